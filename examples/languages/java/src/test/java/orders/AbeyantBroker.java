package orders;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * `abeyant broker` in a process of its own, for the tests of a class, and its control over HTTP.
 *
 * <p>Use it as {@code @RegisterExtension static final AbeyantBroker broker = new AbeyantBroker("--brokers", "3", ...)}.
 */
public final class AbeyantBroker implements BeforeAllCallback, AfterAllCallback {
    public static final ObjectMapper JSON = new ObjectMapper();

    private record Operation(String method, String path, List<String> query) {}

    private final List<String> command =
        new ArrayList<>(List.of(System.getProperty("abeyant", "abeyant"), "broker", "--until-stdin-closes"));
    private final HttpClient http = HttpClient.newHttpClient();
    private final Map<String, Operation> operations = new HashMap<>();
    private Process process;
    private String servers;
    private String control;

    public AbeyantBroker(List<String> arguments) {
        command.addAll(arguments);
    }

    public AbeyantBroker(String... arguments) {
        this(List.of(arguments));
    }

    /** Returns what {@code bootstrap.servers} takes. */
    public String bootstrapServers() {
        return servers;
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException, InterruptedException {
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String line = process.inputReader(StandardCharsets.UTF_8).readLine();
        if (line == null) {
            throw new IOException(command + " ended with status " + process.waitFor());
        }
        JsonNode ports = JSON.readTree(line);
        servers = ports.get("bootstrap.servers").asText();
        control = ports.get("control").asText();
        JsonNode paths = send("GET", control + "openapi.json", null).get("paths");
        paths.properties().forEach(path -> path.getValue().properties().forEach(method -> {
            JsonNode described = method.getValue();
            List<String> query = StreamSupport.stream(described.get("parameters").spliterator(), false)
                .filter(one -> one.get("in").asText().equals("query")).map(one -> one.get("name").asText()).toList();
            operations.put(described.get("operationId").asText(), new Operation(method.getKey(), path.getKey(), query));
        }));
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException, InterruptedException {
        process.destroy();
        int status = process.waitFor();
        if (status != 0) {
            throw new IOException(command + " ended with status " + status);
        }
    }

    /** Calls an operation of control by its operationId, with the values of its path and query, and a body or null. */
    public JsonNode call(String id, Map<String, ?> given, Object body) throws IOException, InterruptedException {
        Operation operation = operations.get(id);
        if (operation == null) {
            throw new IllegalArgumentException("control has no operation " + id);
        }
        String path = operation.path();
        for (Map.Entry<String, ?> one : given.entrySet()) {
            path = path.replace("{" + one.getKey() + "}", encoded(one.getValue()));
        }
        String query = operation.query().stream().filter(given::containsKey)
            .map(name -> name + "=" + encoded(given.get(name))).collect(Collectors.joining("&"));
        return send(operation.method(), control + path.substring(1) + "?" + query, body);
    }

    private JsonNode send(String method, String address, Object body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address));
        if (body == null) {
            request.method(method.toUpperCase(), HttpRequest.BodyPublishers.noBody());
        } else {
            request.header("Content-Type", "application/json");
            request.method(method.toUpperCase(), HttpRequest.BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body)));
        }
        HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() >= 400) {
            throw new IOException(method + " " + address + ": " + response.body());
        }
        return JSON.readTree(response.body());
    }

    private static String encoded(Object value) {
        return URLEncoder.encode(value.toString(), StandardCharsets.UTF_8).replace("+", "%20");
    }
}
