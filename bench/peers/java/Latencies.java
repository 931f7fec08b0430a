/** Counts of latencies in microseconds, exact to about 0.1 %, and what was done in each tenth of a second. */
final class Latencies {
    private static final int EXACT = 2048, HALF = EXACT / 2, LEVELS = 32;
    private static final long SLOT_NANOS = 100_000_000L;
    private final long[] counts = new long[EXACT + LEVELS * HALF];
    private long[] slotRecords = new long[64], slotLongest = new long[64];
    private int slots;
    private long total, longest, begin;

    synchronized void begin(long now) { begin = now; }

    synchronized void record(long dueNanos, long nowNanos) {
        long us = Math.max(0, (nowNanos - dueNanos) / 1000);
        counts[index(us)]++;
        total++;
        longest = Math.max(longest, us);
        int slot = (int) Math.max(0, Math.min(36_000, (nowNanos - begin) / SLOT_NANOS));
        if (slot >= slotRecords.length) {
            int room = Integer.highestOneBit(slot) * 2;
            slotRecords = java.util.Arrays.copyOf(slotRecords, room);
            slotLongest = java.util.Arrays.copyOf(slotLongest, room);
        }
        slots = Math.max(slots, slot + 1);
        slotRecords[slot]++;
        slotLongest[slot] = Math.max(slotLongest[slot], us);
    }

    private static int index(long us) {
        if (us < EXACT) return (int) us;
        int shift = 64 - Long.numberOfLeadingZeros(us) - 11;
        if (shift > LEVELS) return EXACT + LEVELS * HALF - 1;
        return EXACT + (shift - 1) * HALF + (int) ((us >> shift) - HALF);
    }

    private static long value(int index) {
        if (index < EXACT) return index;
        int shift = (index - EXACT) / HALF + 1;
        return ((long) ((index - EXACT) % HALF + HALF) << shift) + (1L << shift) - 1;
    }

    private long at(double part) {
        long want = Math.max(1, (long) Math.ceil(part * total)), seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= want) return Math.min(longest, value(i));
        }
        return longest;
    }

    synchronized long total() { return total; }

    synchronized String latencyJson() {
        if (total == 0) return "null";
        return String.format("{\"p50\":%d,\"p90\":%d,\"p99\":%d,\"p99.9\":%d,\"max\":%d}",
                at(0.5), at(0.9), at(0.99), at(0.999), longest);
    }

    synchronized String slotsJson() {
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < slots; i++) {
            if (i > 0) out.append(',');
            out.append('[').append(slotRecords[i]).append(',').append(slotLongest[i]).append(']');
        }
        return out.append(']').toString();
    }
}
