import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import java.util.zip.CRC32C;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Utils;

/** Writes test vectors as JSON to the standard output; see make.sh. */
public class Vectors {
    static final HexFormat HEX = HexFormat.of();
    static final long T = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "write" -> write();
            case "describe" -> describe();
            case "murmur2" -> murmur2();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** What goes into a batch. */
    static class Spec {
        Compression compression = Compression.NONE;
        TimestampType type = TimestampType.CREATE_TIME;
        long baseOffset = 0, appendTime = RecordBatch.NO_TIMESTAMP, producerId = -1;
        long deleteHorizon = RecordBatch.NO_TIMESTAMP;
        short epoch = -1;
        int sequence = -1, leaderEpoch = -1;
        boolean transactional = false;
        long[] offsets = null;
        List<SimpleRecord> records = new ArrayList<>();

        Spec with(SimpleRecord... rs) {
            records.addAll(List.of(rs));
            return this;
        }

        ByteBuffer build() {
            ByteBufferOutputStream out = new ByteBufferOutputStream(1 << 20);
            MemoryRecordsBuilder b = new MemoryRecordsBuilder(out, RecordBatch.MAGIC_VALUE_V2, compression, type,
                baseOffset, appendTime, producerId, epoch, sequence, transactional, false, leaderEpoch, 1 << 20,
                deleteHorizon);
            for (int i = 0; i < records.size(); i++) {
                long offset = offsets == null ? baseOffset + i : offsets[i];
                b.appendWithOffset(offset, records.get(i));
            }
            return b.build().buffer();
        }
    }

    static void write() {
        List<String> all = new ArrayList<>();
        for (CompressionType type : CompressionType.values()) {
            Compression c = Compression.of(type).build();
            Spec mixed = new Spec().with(mixed());
            mixed.compression = c;
            all.add(vector("mixed " + type.name, mixed));

            Spec producer = new Spec().with(plain(20));
            producer.compression = c;
            producer.producerId = 4_000_000_123L;
            producer.epoch = 7;
            producer.sequence = Integer.MAX_VALUE - 3;
            all.add(vector("producer " + type.name, producer));

            Spec transaction = new Spec().with(plain(3));
            transaction.compression = c;
            transaction.producerId = 42;
            transaction.epoch = 32_766;
            transaction.sequence = 0;
            transaction.transactional = true;
            transaction.baseOffset = 9_000_000_000L;
            transaction.leaderEpoch = 12;
            all.add(vector("transaction " + type.name, transaction));

            Spec append = new Spec().with(mixed());
            append.compression = c;
            append.type = TimestampType.LOG_APPEND_TIME;
            append.appendTime = T + 123_456;
            append.baseOffset = 100;
            all.add(vector("append time " + type.name, append));

            if (type != CompressionType.NONE) {
                // More than one block of every codec.
                Spec large = new Spec().with(large(300));
                large.compression = c;
                all.add(vector("large " + type.name, large));
            }
        }
        Spec gaps = new Spec().with(plain(3));
        gaps.offsets = new long[] {1_002, 1_005, 1_009};
        gaps.baseOffset = 1_000;
        all.add(vector("offset gaps", gaps));

        Spec horizon = new Spec().with(plain(2));
        horizon.deleteHorizon = T + 86_400_000L;
        all.add(vector("delete horizon", horizon));

        Spec untimed = new Spec().with(new SimpleRecord(RecordBatch.NO_TIMESTAMP, null, bytes("untimed")));
        all.add(vector("no timestamp", untimed));

        ByteBuffer empty = ByteBuffer.allocate(61);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.MAGIC_VALUE_V2, 5, (short) 1, 9, 500, 509, 3,
            TimestampType.CREATE_TIME, T, true, false);
        empty.flip();
        all.add(json("emptied by compaction", empty, null));

        for (ControlRecordType kind : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            MemoryRecords marker = MemoryRecords.withEndTransactionMarker(77, T, 5, 42, (short) 3,
                new EndTransactionMarker(kind, 19));
            all.add(json("marker " + kind.name().toLowerCase(), marker.buffer(), null));
        }
        print(all);
    }

    static void describe() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> all = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t");
            all.add(json(parts[0], ByteBuffer.wrap(HEX.parseHex(parts[1])), null));
        }
        print(all);
    }

    static void murmur2() {
        List<byte[]> keys = new ArrayList<>();
        for (String s : List.of("", "a", "ab", "abc", "abcd", "21", "foobar", "a-little-bit-long-string",
            "a-little-bit-longer-string", "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", "größe")) {
            keys.add(bytes(s));
        }
        Random random = new Random(1);
        for (int length = 0; length < 40; length++) {
            byte[] key = new byte[length];
            random.nextBytes(key);
            keys.add(key);
        }
        List<String> all = new ArrayList<>();
        for (byte[] key : keys) {
            StringJoiner partitions = new StringJoiner(", ", "[", "]");
            for (int n : new int[] {1, 2, 3, 7, 12, 64, 1000, Integer.MAX_VALUE}) {
                partitions.add("[" + n + ", " + BuiltInPartitioner.partitionForKey(key, n) + "]");
            }
            all.add(String.format("{\"key\": \"%s\", \"murmur2\": %d, \"partitions\": %s}", HEX.formatHex(key),
                Utils.murmur2(key), partitions));
        }
        print(all);
    }

    static SimpleRecord[] mixed() {
        return new SimpleRecord[] {
            new SimpleRecord(T, bytes("key"), bytes("value")),
            new SimpleRecord(T + 5, null, bytes("no key")),
            new SimpleRecord(T + 3, bytes("tombstone"), null),
            new SimpleRecord(T - 60_000, null, (byte[]) null),
            new SimpleRecord(T + 1_000_000_000L, new byte[0], new byte[0]),
            new SimpleRecord(T + 6, bytes("headers"), bytes("with headers"), new Header[] {
                new RecordHeader("trace", new byte[] {0, 1, (byte) 0xff}),
                new RecordHeader("null", (byte[]) null),
                new RecordHeader("", new byte[0]),
                new RecordHeader("größe", bytes("μ")),
                new RecordHeader("trace", bytes("again")),
            }),
            new SimpleRecord(T + 7, new byte[63], new byte[64]),
        };
    }

    static SimpleRecord[] plain(int n) {
        SimpleRecord[] rs = new SimpleRecord[n];
        for (int i = 0; i < n; i++) {
            rs[i] = new SimpleRecord(T + i, bytes("k" + i % 4), bytes("value number " + i));
        }
        return rs;
    }

    static SimpleRecord[] large(int n) {
        Random random = new Random(7);
        SimpleRecord[] rs = new SimpleRecord[n];
        for (int i = 0; i < n; i++) {
            StringBuilder s = new StringBuilder();
            int word = random.nextInt(100);
            while (s.length() < 600) {
                s.append("word").append(word).append(' ');
            }
            rs[i] = new SimpleRecord(T + i, bytes("k" + i), bytes(s.toString()));
        }
        return rs;
    }

    static String vector(String name, Spec spec) {
        return json(name, spec.build(), spec.records);
    }

    /** What the Java client reads from a batch. `given` adds the timestamps that went in. */
    static String json(String name, ByteBuffer buffer, List<SimpleRecord> given) {
        byte[] raw = new byte[buffer.remaining()];
        buffer.duplicate().get(raw);
        MutableRecordBatch only = null;
        for (MutableRecordBatch b : MemoryRecords.readableRecords(ByteBuffer.wrap(raw)).batches()) {
            if (only != null) {
                throw new IllegalStateException(name + ": more than one batch");
            }
            only = b;
        }
        DefaultRecordBatch batch = (DefaultRecordBatch) only;
        batch.ensureValid();
        StringJoiner records = new StringJoiner(",\n    ", "[\n    ", "]");
        records.setEmptyValue("[]");
        int i = 0;
        for (Record r : batch) {
            StringJoiner headers = new StringJoiner(", ", "[", "]");
            for (Header h : r.headers()) {
                headers.add("[\"" + HEX.formatHex(bytes(h.key())) + "\", " + field(h.value()) + "]");
            }
            String written = given == null ? "" : ", \"written_timestamp\": " + given.get(i).timestamp();
            records.add(String.format("{\"offset\": %d, \"timestamp\": %d%s, \"key\": %s, \"value\": %s, \"headers\": %s}",
                r.offset(), r.timestamp(), written, field(array(r.key())), field(array(r.value())), headers));
            i++;
        }
        StringJoiner fields = new StringJoiner(", ");
        number(fields, "base_offset", batch.baseOffset());
        number(fields, "batch_length", batch.sizeInBytes() - 12);
        number(fields, "leader_epoch", batch.partitionLeaderEpoch());
        number(fields, "crc", batch.checksum());
        number(fields, "last_offset", batch.lastOffset());
        number(fields, "next_offset", batch.nextOffset());
        number(fields, "base_timestamp", batch.baseTimestamp());
        number(fields, "max_timestamp", batch.maxTimestamp());
        number(fields, "producer_id", batch.producerId());
        number(fields, "producer_epoch", batch.producerEpoch());
        number(fields, "base_sequence", batch.baseSequence());
        number(fields, "last_sequence", batch.lastSequence());
        number(fields, "count", batch.countOrNull());
        fields.add("\"compression\": \"" + batch.compressionType().name + "\"");
        fields.add("\"append_time\": " + (batch.timestampType() == TimestampType.LOG_APPEND_TIME));
        fields.add("\"transactional\": " + batch.isTransactional());
        fields.add("\"control\": " + batch.isControlBatch());
        fields.add("\"delete_horizon\": " + (batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "null"));
        return String.format("{\"name\": \"%s\", \"hex\": \"%s\",\n  \"header\": {%s},\n  \"records\": %s}", name,
            HEX.formatHex(raw), fields, records);
    }

    /** A field as hex; a long one as its length and CRC32C. */
    static String field(byte[] b) {
        if (b == null) {
            return "null";
        }
        if (b.length <= 64) {
            return "\"" + HEX.formatHex(b) + "\"";
        }
        CRC32C crc = new CRC32C();
        crc.update(b);
        return "{\"bytes\": " + b.length + ", \"crc32c\": " + crc.getValue() + "}";
    }

    static void number(StringJoiner to, String name, long value) {
        to.add("\"" + name + "\": " + value);
    }

    static byte[] array(ByteBuffer b) {
        return b == null ? null : Utils.toArray(b);
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static void print(List<String> all) {
        System.out.println("[\n" + String.join(",\n", all) + "\n]");
    }
}
