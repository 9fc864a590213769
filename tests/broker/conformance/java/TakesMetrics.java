import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;

/** Genuine Kafka has the telemetry APIs only with a plugin that takes the metrics: this one reads and drops them. */
public class TakesMetrics implements MetricsReporter, ClientTelemetryExporterProvider {
    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        return (context, payload) -> {
            try {
                MetricsData.parseFrom(payload.data());
            } catch (Exception error) {
                throw new IllegalArgumentException(error);
            }
        };
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}

    @Override
    public void configure(Map<String, ?> configs) {}
}
