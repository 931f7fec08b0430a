"""Lists the services of a broker and calls one by its name alone, as grpcurl does: by server reflection.

    python reflect.py --server 127.0.0.1:7450
"""

import argparse

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:7450")
    args = parser.parse_args()
    with grpc.insecure_channel(args.server) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        names = sorted(database.get_services())
        for name in names:
            print(name)
        for wanted in ["Producer", "Consumer", "Metadata", "Admin"]:
            assert f"tidemill.v1.{wanted}" in names, f"{wanted} is not listed"
        pool = DescriptorPool(database)
        method = pool.FindServiceByName("tidemill.v1.Admin").FindMethodByName("ClusterStatus")
        request = message_factory.GetMessageClass(method.input_type)()
        answer_class = message_factory.GetMessageClass(method.output_type)
        call = channel.unary_unary(
            "/tidemill.v1.Admin/ClusterStatus",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=answer_class.FromString,
        )
        answer = call(request, timeout=10)
        print(json_format.MessageToJson(answer))
        assert answer.cluster and answer.members


if __name__ == "__main__":
    main()
