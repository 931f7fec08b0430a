"""Reads a topic as a member of a consumer group, by unary calls: join, heartbeats, fetch, commit, leave.

    python group.py --server 127.0.0.1:7450 --topic example --group example

Prints how many records it read and ends when nothing is left. Run it again and it reads what came since; run several at
once and they share the partitions.
"""

import argparse
import time
import uuid

import grpc

import stubs

_STUBS = stubs.load()

from tidemill.v1 import consumer_pb2, consumer_pb2_grpc  # noqa: E402
from tidemill.v1 import group_pb2, group_pb2_grpc, metadata_pb2, metadata_pb2_grpc  # noqa: E402


class Member:
    """One member. All calls go to the group's coordinator."""

    def __init__(self, server, group, topic):
        self.group, self.topic = group, topic
        with grpc.insecure_channel(server) as channel:
            found = group_pb2_grpc.GroupsStub(channel).FindCoordinator(
                group_pb2.FindCoordinatorRequest(group=group), timeout=30
            )
        self.channel = grpc.insecure_channel(found.address)
        self.stub = group_pb2_grpc.GroupsStub(self.channel)
        self.id = str(uuid.uuid4())
        self.positions = {}
        join = group_pb2.JoinGroupRequest(
            group=group,
            member=self.id,
            incarnation=uuid.uuid4().int & 0xFFFFFFFF | 1,
            attempt=1,
            subscription=group_pb2.Subscription(topics=[topic]),
            client="example",
        )
        self.follow(self.stub.JoinGroup(join, timeout=30))

    def heartbeat(self):
        owned = [group_pb2.GroupPartition(topic=self.topic, partition=p) for p in self.positions]
        beat = group_pb2.HeartbeatRequest(
            group=self.group,
            member=self.id,
            epoch=self.assignment.epoch,
            revision=self.assignment.revision,
            owned=group_pb2.OwnedPartitions(partitions=owned),
        )
        self.follow(self.stub.Heartbeat(beat, timeout=10))

    def follow(self, assignment):
        """Gives up what is not assigned any more, and takes up what is new from its committed offset on."""
        self.assignment = assignment
        self.beat_at = time.monotonic() + assignment.heartbeat_interval_ms / 1000
        have = {p.partition for p in assignment.assigned}
        gone = [p for p in self.positions if p not in have]
        if gone:
            self.commit(gone)
            for p in gone:
                del self.positions[p]
            # Confirms it: others may have them now.
            self.beat_at = 0
        new = [p for p in have if p not in self.positions]
        if new:
            request = group_pb2.FetchOffsetsRequest(
                group=self.group,
                member=self.id,
                epoch=assignment.epoch,
                partitions=[group_pb2.GroupPartition(topic=self.topic, partition=p) for p in new],
            )
            for c in self.stub.FetchOffsets(request, timeout=30).offsets:
                self.positions[c.partition] = max(c.offset, 0)

    def commit(self, partitions):
        offsets = [
            group_pb2.OffsetToCommit(topic=self.topic, partition=p, offset=self.positions[p]) for p in partitions
        ]
        if not offsets:
            return
        request = group_pb2.CommitOffsetsRequest(
            group=self.group, member=self.id, epoch=self.assignment.epoch, offsets=offsets
        )
        for r in self.stub.CommitOffsets(request, timeout=30).results:
            assert not r.HasField("error"), r.error

    def leave(self):
        self.stub.LeaveGroup(
            group_pb2.LeaveGroupRequest(group=self.group, member=self.id, epoch=self.assignment.epoch), timeout=10
        )
        self.channel.close()


def fetch(address, topic, partition, offset):
    with grpc.insecure_channel(address) as channel:
        want = consumer_pb2.FetchPartition(topic=topic, partition=partition, offset=offset)
        request = consumer_pb2.FetchRequest(partitions=[want], max_wait_ms=200, as_records=True)
        got = consumer_pb2_grpc.ConsumerStub(channel).Fetch(request, timeout=30).partitions[0]
    if got.HasField("error"):
        raise SystemExit(f"fetch: {got.error.code}: {got.error.message}")
    return got


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:7450")
    parser.add_argument("--topic", default="example-python")
    parser.add_argument("--group", default="example-python")
    parser.add_argument("--expect", type=int, help="fail when it is not so many records")
    args = parser.parse_args()

    with grpc.insecure_channel(args.server) as channel:
        topic = metadata_pb2_grpc.MetadataStub(channel).Describe(
            metadata_pb2.DescribeRequest(topics=[args.topic]), timeout=10
        ).topics[0]
    owners = {p.index: p.owner for p in topic.partitions}
    member = Member(args.server, args.group, args.topic)
    read, left = 0, True
    while left:
        left = False
        for partition, offset in list(member.positions.items()):
            got = fetch(owners[partition], args.topic, partition, offset)
            # Here a service would do its work.
            read += len(got.records)
            member.positions[partition] = got.next_offset
            left |= got.next_offset < got.high_watermark
        member.commit(member.positions)
        if time.monotonic() >= member.beat_at:
            member.heartbeat()
            left = True
    member.leave()
    print(f"{read} records read by group {args.group}")
    if args.expect is not None and read != args.expect:
        raise SystemExit(f"{args.expect} expected")


if __name__ == "__main__":
    main()
