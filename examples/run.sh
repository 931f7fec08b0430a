#!/usr/bin/env bash
# Runs the examples of one language against a cluster of its own, on free ports and in a temporary directory:
#   examples/run.sh rust|python|go
# TIDEMILL_BIN names the binary; without it the debug build is taken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

language=${1:-}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tidemill=${TIDEMILL_BIN:-$target/debug/tidemill}
python=$target/venv/bin/python

fail() {
    echo "error: $1" >&2
    exit 1
}

[[ $language == rust || $language == python || $language == go ]] || fail "which examples: examples/run.sh rust|python|go"
[[ -x $tidemill ]] || fail "$tidemill is not there: run cargo build --workspace first, or set TIDEMILL_BIN"
if [[ $language == rust ]]; then
    # Only for the ports and for asking whether the cluster is ready.
    python=python3
fi
# The Go stubs are made by the protoc that grpcio-tools brings along, so both need the environment.
if [[ $language != rust && ! -x $python ]]; then
    command -v python3 >/dev/null || fail "Python 3 is not installed"
    python3 -m venv "$target/venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check -r examples/python/requirements.txt
fi
[[ $language != go ]] || command -v go >/dev/null || fail "Go is not installed (examples/go/go.mod says which version)"

dir=$(mktemp -d)
cluster=
stop() {
    local code=$?
    if [[ -n $cluster ]]; then
        kill -TERM "$cluster" 2>/dev/null || true
        wait "$cluster" || { echo "error: the cluster did not stop in order" >&2; code=1; }
    fi
    # The log explains a failure; a success leaves nothing behind.
    [[ $code == 0 ]] || tail -n 50 "$dir/up.log" >&2 || true
    rm -rf "$dir"
    exit "$code"
}
trap stop EXIT

# Ports that nobody held a moment ago: both sockets are open at once, so that the two differ.
read -r grpc http < <("$python" -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')

"$tidemill" up --data-dir "$dir/data" --listen "127.0.0.1:$grpc" --http "127.0.0.1:$http" >"$dir/up.log" 2>&1 &
cluster=$!

ready() {
    "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' \
        "http://127.0.0.1:$http/readyz" 2>/dev/null
}
for ((tries = 0; ; tries++)); do
    ready && break
    kill -0 "$cluster" 2>/dev/null || fail "the cluster ended before it was ready"
    ((tries < 300)) || fail "the cluster is not ready after a minute"
    sleep 0.2
done

server=127.0.0.1:$grpc
if [[ $language == rust ]]; then
    "$target/debug/examples/group" "$server"
elif [[ $language == python ]]; then
    "$python" examples/python/roundtrip.py --server "$server"
    "$python" examples/python/group.py --server "$server" --expect 1000
    "$python" examples/python/group.py --server "$server" --expect 0
    "$python" examples/python/reflect.py --server "$server"
else
    PYTHON=$python examples/go/generate.sh
    (cd examples/go && go run . -server "$server")
fi
