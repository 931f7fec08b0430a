#!/bin/sh
# Makes the test vectors anew with the Java client of Kafka (version in pom.xml).
#
#   java.json     batches that the Java client wrote, with what it reads from them
#   ours.json     batches that this crate wrote, with what the Java client reads from them
#   murmur2.json  hashes and partitions of keys, by the Java client's default partitioner
#
# Needs a JDK 17 or newer, Maven with network access, and cargo. Run it from anywhere: crates/record/testdata/make/make.sh
# The tests compare this crate with the files; they need none of that.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(dirname "$here")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib"
run() { java -cp "$work/lib/*" "$here/Vectors.java" "$@" 2>"$work/log" || { cat "$work/log" >&2; return 1; }; }
run write >"$work/java.json"
run murmur2 >"$work/murmur2.json"
(cd "$here" && cargo run -q -p tidemill-record --example emit_vectors) >"$work/ours.txt"
run describe <"$work/ours.txt" >"$work/ours.json"
for f in java ours murmur2; do mv "$work/$f.json" "$out/$f.json"; done
