import java.net.HttpURLConnection;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SizeUnit;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Pulsar through its own client; the address is {@code BINARY-URL;HTTP-URL}. */
final class Pulsar implements Peer {
    private String web, topic;
    private Settings settings;
    private PulsarClient client;
    private Producer<byte[]> producer;

    @Override
    public void connect(String address, String topic, Settings settings) throws Exception {
        String[] urls = address.split(";");
        web = urls[1];
        this.topic = topic;
        this.settings = settings;
        client = PulsarClient.builder().serviceUrl(urls[0]).ioThreads(1).statsInterval(0, TimeUnit.SECONDS)
                .memoryLimit(settings.number("memoryBytes", 33_554_432), SizeUnit.BYTES)
                .startingBackoffInterval(20, TimeUnit.MILLISECONDS).maxBackoffInterval(200, TimeUnit.MILLISECONDS)
                .operationTimeout(10, TimeUnit.SECONDS).build();
    }

    @Override
    public void create(int partitions) throws Exception {
        URI uri = URI.create(web + "/admin/v2/persistent/public/default/" + topic + "/partitions");
        HttpURLConnection http = (HttpURLConnection) uri.toURL().openConnection();
        http.setRequestMethod("PUT");
        http.setDoOutput(true);
        http.setRequestProperty("Content-Type", "application/json");
        http.setConnectTimeout(2_000);
        http.setReadTimeout(15_000);
        http.getOutputStream().write(String.valueOf(partitions).getBytes());
        int code = http.getResponseCode();
        if (code >= 300 && code != 409) throw new IllegalStateException("create: HTTP " + code);
    }

    @Override
    public void openWriter() throws Exception {
        int batch = settings.size("batchBytes", 131_072);
        producer = client.newProducer().topic("persistent://public/default/" + topic).sendTimeout(0, TimeUnit.SECONDS)
                .blockIfQueueFull(true).maxPendingMessages(60_000).maxPendingMessagesAcrossPartitions(400_000)
                .enableBatching(true).batchingMaxBytes(batch).batchingMaxMessages(Math.max(1_000, batch / 100))
                .batchingMaxPublishDelay(Math.max(1, settings.number("lingerMs", 1)), TimeUnit.MILLISECONDS).create();
    }

    @Override
    public void write(byte[] value, Consumer<Throwable> done) {
        producer.sendAsync(value).whenComplete((where, e) -> done.accept(e));
    }

    @Override
    public void read(boolean fromStart, Consumer<byte[]> each) throws Exception {
        var from = fromStart ? SubscriptionInitialPosition.Earliest : SubscriptionInitialPosition.Latest;
        client.newConsumer().topic("persistent://public/default/" + topic).subscriptionName("s" + System.nanoTime())
                .subscriptionInitialPosition(from).receiverQueueSize(5_000)
                .maxTotalReceiverQueueSizeAcrossPartitions(50_000).acknowledgmentGroupTime(100, TimeUnit.MILLISECONDS)
                .messageListener((c, m) -> {
                    each.accept(m.getData());
                    c.acknowledgeAsync(m);
                }).subscribe();
    }

    @Override
    public void close() {
        if (client != null) client.closeAsync();
    }
}
