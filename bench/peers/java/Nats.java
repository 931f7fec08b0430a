import io.nats.client.Connection;
import io.nats.client.ConsumeOptions;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamOptions;
import io.nats.client.Options;
import io.nats.client.api.DeliverPolicy;
import io.nats.client.api.OrderedConsumerConfiguration;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamConfiguration;
import java.time.Duration;
import java.util.function.Consumer;

/** JetStream: a topic of N partitions is N streams in files with three replicas, written in turn. */
final class Nats implements Peer {
    private Connection connection;
    private JetStream stream;
    private String topic;
    private int partitions;
    private long turn;

    @Override
    public void connect(String address, String topic, Settings settings) throws Exception {
        this.topic = topic;
        partitions = settings.size("partitions", 8);
        connection = io.nats.client.Nats.connect(new Options.Builder().servers(address.split(","))
                .connectionTimeout(Duration.ofSeconds(2)).reconnectWait(Duration.ofMillis(20)).maxReconnects(-1)
                .maxMessagesInOutgoingQueue(1_000_000).build());
        stream = connection.jetStream(JetStreamOptions.builder().requestTimeout(Duration.ofSeconds(2)).build());
    }

    @Override
    public void create(int partitions) throws Exception {
        JetStreamManagement m = connection.jetStreamManagement(
                JetStreamOptions.builder().requestTimeout(Duration.ofSeconds(5)).build());
        for (int i = 0; i < partitions; i++) {
            try {
                m.addStream(StreamConfiguration.builder().name(topic + "-" + i).subjects(topic + "." + i)
                        .storageType(StorageType.File).replicas(3).build());
            } catch (JetStreamApiException e) {
                if (e.getApiErrorCode() != 10058) throw e;
            }
        }
    }

    @Override
    public void openWriter() {}

    @Override
    public void write(byte[] value, Consumer<Throwable> done) {
        stream.publishAsync(topic + "." + turn++ % partitions, value).whenComplete((where, e) -> done.accept(e));
    }

    @Override
    public void read(boolean fromStart, Consumer<byte[]> each) throws Exception {
        for (int i = 0; i < partitions; i++) {
            connection.getStreamContext(topic + "-" + i)
                    .createOrderedConsumer(new OrderedConsumerConfiguration()
                            .deliverPolicy(fromStart ? DeliverPolicy.All : DeliverPolicy.New))
                    .consume(ConsumeOptions.builder().batchSize(2_000).build(), m -> each.accept(m.getData()));
        }
    }

    @Override
    public void close() {
        try {
            if (connection != null) connection.close();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
