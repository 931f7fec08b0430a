import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * The load for systems that are measured through their Java client: {@code Load PEER ADDRESS TOPIC MODE name=value...}.
 *
 * <p>Modes: {@code create partitions=N}, {@code produce}, {@code e2e}, {@code consume records=N}, {@code first partitions=N}. One line
 * of JSON comes out, in the shape of {@code tidemill bench --json}. Latencies count from when a record was due, so that a stall shows in
 * all records that were due meanwhile.
 */
public final class Load {
    private static final LongAdder failures = new LongAdder();
    private static final AtomicLong lastAck = new AtomicLong();
    private static volatile String firstFailure;

    public static void main(String[] args) throws Exception {
        Locale.setDefault(Locale.ROOT);
        Settings s = new Settings(args, 4);
        String address = args[1], topic = args[2];
        try {
            String out = switch (args[3]) {
                case "create" -> create(args[0], address, topic, s);
                case "produce" -> produce(args[0], address, topic, s);
                case "e2e" -> endToEnd(args[0], address, topic, s);
                case "consume" -> consume(args[0], address, topic, s);
                case "first" -> first(args[0], address, topic, s);
                default -> throw new IllegalArgumentException(args[3] + ": not a mode");
            };
            System.out.println(out);
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static Peer peer(String name) throws Exception {
        return (Peer) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    private static Peer connected(String name, String address, String topic, Settings s) throws Exception {
        Peer p = peer(name);
        p.connect(address, topic, s);
        return p;
    }

    private static String create(String name, String address, String topic, Settings s) throws Exception {
        try (Peer p = connected(name, address, topic, s)) {
            p.create(s.size("partitions", 8));
        }
        return "{}";
    }

    /** From its own beginning until a first record is acknowledged, whatever has to be tried again for that. */
    private static String first(String name, String address, String topic, Settings s) throws Exception {
        boolean made = false;
        while (true) {
            Peer p = peer(name);
            try {
                p.connect(address, topic, s);
                if (!made) p.create(s.size("partitions", 1));
                made = true;
                p.openWriter();
                CompletableFuture<Void> acked = new CompletableFuture<>();
                p.write(new byte[100], e -> { if (e == null) acked.complete(null); else acked.completeExceptionally(e); });
                acked.get(10, TimeUnit.SECONDS);
                return "{\"firstAckMs\":" + System.currentTimeMillis() + "}";
            } catch (Exception e) {
                p.close();
                Thread.sleep(20);
            }
        }
    }

    private static void load(Peer p, Settings s, Latencies latencies, long run) throws Exception {
        long rate = s.number("rate", 0), bytes = s.number("bytes", 100);
        long warm = s.number("warmupMs", 0) * 1_000_000, time = s.number("ms", 10_000) * 1_000_000;
        Semaphore room = new Semaphore(s.size("inFlightRecords", Integer.MAX_VALUE));
        byte[] pool = new byte[1 << 20];
        new java.util.Random(7).nextBytes(pool);
        long begin = System.nanoTime(), measured = begin + warm, end = measured + time;
        latencies.begin(measured);
        AtomicLong sent = new AtomicLong(), told = new AtomicLong();
        for (long n = 0; ; n++) {
            long due = rate == 0 ? System.nanoTime() : begin + (long) (n * (1e9 / rate));
            if (due >= end || System.nanoTime() >= end) break;
            for (long left; (left = due - System.nanoTime()) > 0; ) LockSupport.parkNanos(left);
            room.acquire();
            byte[] value = new byte[(int) bytes];
            System.arraycopy(pool, (int) (n * 131 % (pool.length - bytes)), value, 0, value.length);
            ByteBuffer.wrap(value).putLong(run).putLong(due);
            sent.incrementAndGet();
            try {
                p.write(value, e -> {
                    long now = System.nanoTime();
                    room.release();
                    told.incrementAndGet();
                    if (e != null) {
                        failed(e);
                    } else if (due >= measured) {
                        latencies.record(due, now);
                        lastAck.set(now);
                    }
                });
            } catch (Exception e) {
                told.incrementAndGet();
                room.release();
                failed(e);
                Thread.sleep(1);
            }
        }
        for (int i = 0; i < 3_000 && told.get() < sent.get(); i++) Thread.sleep(10);
        if (told.get() < sent.get()) failed(new Exception((sent.get() - told.get()) + " records without an answer after 30 s"));
        lastAck.set(Math.max(lastAck.get(), measured + 1) - measured);
    }

    private static void failed(Throwable e) {
        failures.increment();
        if (firstFailure == null) firstFailure = String.valueOf(e);
    }

    private static String produce(String name, String address, String topic, Settings s) throws Exception {
        Peer p = connected(name, address, topic, s);
        p.openWriter();
        Latencies l = new Latencies();
        load(p, s, l, 1);
        return report(l.total(), lastAck.get() / 1e9, l, null);
    }

    private static String endToEnd(String name, String address, String topic, Settings s) throws Exception {
        long run = System.nanoTime();
        Latencies received = new Latencies(), acked = new Latencies();
        long measured = System.nanoTime() + s.number("warmupMs", 0) * 1_000_000;
        received.begin(measured);
        Peer reader = connected(name, address, topic, s);
        reader.read(false, value -> {
            long now = System.nanoTime();
            ByteBuffer b = ByteBuffer.wrap(value);
            if (value.length >= 16 && b.getLong() == run) {
                long due = b.getLong();
                if (due >= measured) received.record(due, now);
            }
        });
        Peer writer = connected(name, address, topic, s);
        writer.openWriter();
        load(writer, s, acked, run);
        for (int i = 0; i < 500 && received.total() < acked.total(); i++) Thread.sleep(10);
        return report(received.total(), lastAck.get() / 1e9, received, acked);
    }

    private static String consume(String name, String address, String topic, Settings s) throws Exception {
        long want = s.number("records", 1), begin = System.nanoTime();
        AtomicLong records = new AtomicLong(), last = new AtomicLong(begin);
        CountDownLatch all = new CountDownLatch(1);
        Peer p = connected(name, address, topic, s);
        p.read(true, value -> {
            if (records.incrementAndGet() == want) {
                last.set(System.nanoTime());
                all.countDown();
            }
        });
        if (!all.await(120, TimeUnit.SECONDS)) last.set(System.nanoTime());
        return report(records.get(), (last.get() - begin) / 1e9, null, null);
    }

    private static String report(long records, double seconds, Latencies latency, Latencies acks) {
        String why = firstFailure == null ? "null" : '"' + firstFailure.replace("\\", "/").replace('"', '\'').replace('\n', ' ') + '"';
        return String.format("{\"records\":%d,\"seconds\":%.6f,\"latencyUs\":%s,\"ackLatencyUs\":%s,\"slotSeconds\":0.1,"
                + "\"slots\":%s,\"failures\":%d,\"firstFailure\":%s}", records, seconds,
                latency == null ? "null" : latency.latencyJson(), acks == null ? "null" : acks.latencyJson(),
                latency == null ? "[]" : latency.slotsJson(), failures.sum(), why);
    }
}
