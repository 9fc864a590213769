import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's command-line tools, each in the same JVM: a JSON array of the class and its arguments per line. */
public class Tools {
    static final ObjectMapper JSON = new ObjectMapper();

    static class Exited extends Error {
        final int status;

        Exited(int status, String message) {
            super(message);
            this.status = status;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status, message);
        });
        Exit.setHaltProcedure((status, message) -> {
            throw new Exited(status, message);
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            ByteArrayOutputStream failed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(failed, true, StandardCharsets.UTF_8));
            int status = 0;
            try {
                status = run(JSON.readTree(line));
            } finally {
                System.setOut(out);
                System.setErr(err);
            }
            ObjectNode answer = JSON.createObjectNode();
            answer.put("status", status);
            answer.put("out", said.toString(StandardCharsets.UTF_8));
            answer.put("err", failed.toString(StandardCharsets.UTF_8));
            out.println(JSON.writeValueAsString(answer));
        }
    }

    static int run(JsonNode asked) throws Exception {
        String[] arguments = new String[asked.size() - 1];
        for (int place = 0; place < arguments.length; place++) {
            arguments[place] = asked.get(place + 1).asText();
        }
        try {
            Class.forName(asked.get(0).asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Exited) {
                Exited exited = (Exited) error.getCause();
                if (exited.getMessage() != null) {
                    System.err.println(exited.getMessage());
                }
                return exited.status;
            }
            System.err.println(error.getCause());
            return 1;
        }
    }
}
