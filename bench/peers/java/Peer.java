import java.util.function.Consumer;

/** What a system has to offer to be measured by {@link Load}. One class per system. */
interface Peer extends AutoCloseable {
    /** Connects to {@code address}; may throw, the caller tries again. */
    void connect(String address, String topic, Settings settings) throws Exception;

    /** Makes the topic with three copies. */
    void create(int partitions) throws Exception;

    /** Gets ready to write. */
    void openWriter() throws Exception;

    /** Sends one record without waiting for its acknowledgement, which is told to {@code done} with null, or why not. */
    void write(byte[] value, Consumer<Throwable> done) throws Exception;

    /** Delivers every record, of the whole topic or only those to come, on any thread; returns once it is subscribed. */
    void read(boolean fromStart, Consumer<byte[]> each) throws Exception;

    @Override
    void close();
}
