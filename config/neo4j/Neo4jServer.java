import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import org.neo4j.graphdb.QueryExecutionException;

/**
 * Neo4j Community with Bolt on loopback, for machines without a server distribution or containers.
 *
 * <p>Arguments: the data folder, the settings file, the port, and the process to live with (0 for none).
 * The password is the first line of standard input, so that no process list shows it. The file
 * {@code ready} appears in the data folder once the server answers with that password.
 */
public final class Neo4jServer {
    private Neo4jServer() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        Path folder = Path.of(args[0]);
        int port = Integer.parseInt(args[2]);
        long companion = Long.parseLong(args[3]);
        String password = new String(System.in.readAllBytes(), StandardCharsets.UTF_8).strip();

        DatabaseManagementService server = new DatabaseManagementServiceBuilder(folder.resolve("home"))
                .loadPropertiesFromFile(Path.of(args[1]))
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
                .setConfig(BoltConnector.advertised_address, new SocketAddress("127.0.0.1", port))
                .build();
        CountDownLatch over = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.shutdown();
            over.countDown();
        }));
        setPassword(server, password);
        ProcessHandle.of(companion).ifPresent(other -> other.onExit().thenRun(() -> System.exit(0)));
        announce(folder.resolve("ready"));
        over.await();
    }

    private static void setPassword(DatabaseManagementService server, String password) {
        try {
            server.database(GraphDatabaseSettings.SYSTEM_DATABASE_NAME)
                    .executeTransactionally(
                            "ALTER USER neo4j SET PASSWORD $password CHANGE NOT REQUIRED",
                            Map.of("password", password));
        } catch (QueryExecutionException refused) {
            // A later start with the password that it already has is refused, and is what we want.
            if (!String.valueOf(refused.getMessage()).contains("cannot be the same")) {
                throw refused;
            }
        }
    }

    private static void announce(Path ready) throws IOException {
        Path draft = ready.resolveSibling("ready.new");
        Files.writeString(draft, Long.toString(ProcessHandle.current().pid()));
        Files.move(draft, ready, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }
}
