import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka through its own client: acks=all and idempotence, as its defaults are. */
final class Kafka implements Peer {
    private String address, topic;
    private Settings settings;
    private KafkaProducer<byte[], byte[]> producer;

    @Override
    public void connect(String address, String topic, Settings settings) {
        this.address = address;
        this.topic = topic;
        this.settings = settings;
    }

    private Properties properties() {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("reconnect.backoff.max.ms", "100");
        p.put("retry.backoff.max.ms", "100");
        return p;
    }

    @Override
    public void create(int partitions) throws Exception {
        Properties p = properties();
        p.put("request.timeout.ms", "5000");
        p.put("default.api.timeout.ms", "60000");
        try (Admin admin = Admin.create(p)) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 3))).all().get();
        } catch (java.util.concurrent.ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) throw e;
        }
    }

    @Override
    public void openWriter() {
        Properties p = properties();
        p.put("acks", "all");
        p.put("linger.ms", String.valueOf(settings.number("lingerMs", 5)));
        p.put("batch.size", String.valueOf(settings.number("batchBytes", 16_384)));
        p.put("buffer.memory", String.valueOf(settings.number("memoryBytes", 33_554_432)));
        p.put("max.in.flight.requests.per.connection", String.valueOf(settings.number("inFlight", 5)));
        p.put("max.request.size", "2097152");
        p.put("max.block.ms", "60000");
        producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public void write(byte[] value, Consumer<Throwable> done) {
        producer.send(new ProducerRecord<>(topic, value), (where, e) -> done.accept(e));
    }

    @Override
    public void read(boolean fromStart, Consumer<byte[]> each) {
        Properties p = properties();
        p.put("max.poll.records", "5000");
        KafkaConsumer<byte[], byte[]> c =
                new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> all = c.partitionsFor(topic).stream()
                .map(i -> new TopicPartition(topic, i.partition())).collect(Collectors.toList());
        c.assign(all);
        if (fromStart) c.seekToBeginning(all); else c.seekToEnd(all);
        all.forEach(c::position);
        Thread reader = new Thread(() -> {
            while (true) c.poll(Duration.ofMillis(100)).forEach(r -> each.accept(r.value()));
        });
        reader.setDaemon(true);
        reader.start();
    }

    @Override
    public void close() {
        if (producer != null) producer.close(Duration.ZERO);
    }
}
