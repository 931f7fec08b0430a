"""Makes the gRPC stubs from proto/ with the compiler that grpcio-tools ships, and imports them."""

import pathlib
import sys
import tempfile

import grpc_tools
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2] / "proto"
FILES = ["common", "producer", "consumer", "metadata", "admin", "group"]


def load():
    """Compiles into a temporary directory, kept for the life of the process, and puts it on the path."""
    out = tempfile.TemporaryDirectory(prefix="tidemill-stubs-")
    include = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    code = protoc.main(
        ["protoc", f"-I{ROOT}", f"-I{include}", f"--python_out={out.name}", f"--grpc_python_out={out.name}"]
        + [f"tidemill/v1/{name}.proto" for name in FILES]
    )
    if code != 0:
        raise SystemExit(f"protoc ended with {code}")
    sys.path.insert(0, out.name)
    return out
