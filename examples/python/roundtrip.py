"""Writes lines to a topic and reads them back, with nothing but the stubs made from proto/.

    pip install -r requirements.txt
    python roundtrip.py --server 127.0.0.1:7450 --topic example --count 1000
"""

import argparse

import grpc

import stubs

_STUBS = stubs.load()

from tidemill.v1 import admin_pb2, admin_pb2_grpc  # noqa: E402
from tidemill.v1 import common_pb2, consumer_pb2, consumer_pb2_grpc  # noqa: E402
from tidemill.v1 import metadata_pb2, metadata_pb2_grpc, producer_pb2, producer_pb2_grpc  # noqa: E402

BATCH = 100


def owners(channel, topic):
    """Partition index -> (address of its owner, epoch), from any broker."""
    answer = metadata_pb2_grpc.MetadataStub(channel).Describe(metadata_pb2.DescribeRequest(topics=[topic]), timeout=10)
    if answer.unknown:
        raise SystemExit(f"topic {topic} does not exist")
    return {p.index: (p.owner, p.epoch) for p in answer.topics[0].partitions}


def produce(address, topic, partition, epoch, values):
    """Writes the values in order; an answer means that they are on the disks of the ack quorum."""
    with grpc.insecure_channel(address) as channel:
        stub = producer_pb2_grpc.ProducerStub(channel)
        for start in range(0, len(values), BATCH):
            records = [common_pb2.Record(value=v) for v in values[start : start + BATCH]]
            request = producer_pb2.ProduceRequest(topic=topic, partition=partition, epoch=epoch, records=records)
            answer = stub.Produce(request, timeout=30)
            assert answer.count == len(records), answer


def consume(address, topic, partition, epoch):
    """Reads the partition from its start to its end."""
    values = []
    with grpc.insecure_channel(address) as channel:
        stub = consumer_pb2_grpc.ConsumerStub(channel)
        offset = 0
        while True:
            want = consumer_pb2.FetchPartition(topic=topic, partition=partition, epoch=epoch, offset=offset)
            request = consumer_pb2.FetchRequest(partitions=[want], max_wait_ms=1000, as_records=True)
            got = stub.Fetch(request, timeout=30).partitions[0]
            if got.HasField("error"):
                raise SystemExit(f"fetch: {got.error.code}: {got.error.message}")
            values.extend(r.value for r in got.records)
            offset = got.next_offset
            if offset >= got.high_watermark:
                return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:7450")
    parser.add_argument("--topic", default="example-python")
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()

    with grpc.insecure_channel(args.server) as channel:
        admin = admin_pb2_grpc.AdminStub(channel)
        admin.CreateTopic(
            admin_pb2.CreateTopicRequest(name=args.topic, partitions=2, if_not_exists=True), timeout=30
        )
        where = owners(channel, args.topic)

    sent = {i: [b"line %d of partition %d" % (n, i) for n in range(args.count // len(where))] for i in where}
    before = {i: len(consume(a, args.topic, i, e)) for i, (a, e) in where.items()}
    for i, (address, epoch) in where.items():
        produce(address, args.topic, i, epoch, sent[i])
    for i, (address, epoch) in where.items():
        got = consume(address, args.topic, i, epoch)[before[i] :]
        assert got == sent[i], f"partition {i}: {len(got)} records read, {len(sent[i])} written"
    print(f"{sum(map(len, sent.values()))} records written and read back, in order")


if __name__ == "__main__":
    main()
