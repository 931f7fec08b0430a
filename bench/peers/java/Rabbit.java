import com.rabbitmq.client.Address;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Consumer;

/** RabbitMQ: a topic of N partitions is N quorum queues with three members, written in turn, with publisher confirms. */
final class Rabbit implements Peer {
    private final List<Channel> channels = new ArrayList<>();
    private final ConcurrentNavigableMap<Long, Consumer<Throwable>> waiting = new ConcurrentSkipListMap<>();
    private Connection connection;
    private Channel writer;
    private String topic;
    private int partitions;
    private long turn;

    @Override
    public void connect(String address, String topic, Settings settings) throws Exception {
        this.topic = topic;
        partitions = settings.size("partitions", 8);
        ConnectionFactory f = new ConnectionFactory();
        f.setConnectionTimeout(2_000);
        connection = f.newConnection(Address.parseAddresses(address));
    }

    @Override
    public void create(int partitions) throws Exception {
        Channel c = connection.createChannel();
        Map<String, Object> kind = Map.of("x-queue-type", "quorum", "x-quorum-initial-group-size", 3);
        for (int i = 0; i < partitions; i++) c.queueDeclare(topic + "-" + i, true, false, false, kind);
        c.close();
    }

    @Override
    public void openWriter() throws Exception {
        writer = connection.createChannel();
        writer.confirmSelect();
        writer.addConfirmListener(
                (tag, many) -> told(tag, many, null),
                (tag, many) -> told(tag, many, new IllegalStateException("refused")));
    }

    private void told(long tag, boolean many, Throwable why) {
        if (many) {
            var head = waiting.headMap(tag, true);
            head.values().forEach(done -> done.accept(why));
            head.clear();
        } else {
            Consumer<Throwable> done = waiting.remove(tag);
            if (done != null) done.accept(why);
        }
    }

    @Override
    public void write(byte[] value, Consumer<Throwable> done) throws Exception {
        waiting.put(writer.getNextPublishSeqNo(), done);
        writer.basicPublish("", topic + "-" + turn++ % partitions, MessageProperties.PERSISTENT_BASIC, value);
    }

    @Override
    public void read(boolean fromStart, Consumer<byte[]> each) throws Exception {
        for (int i = 0; i < partitions; i++) {
            Channel c = connection.createChannel();
            channels.add(c);
            c.basicQos(1_000);
            c.basicConsume(topic + "-" + i, false, (tag, m) -> {
                each.accept(m.getBody());
                c.basicAck(m.getEnvelope().getDeliveryTag(), false);
            }, tag -> {});
        }
    }

    @Override
    public void close() {
        if (connection != null) connection.abort();
    }
}
