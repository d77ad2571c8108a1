// An OPC UA server on Eclipse Milo, an independent stack. Arguments: folder of its keys, port (0: any), and namespaces
// before that of the line. Prints its port, then follows commands on standard input, and ends with it:
//   set NAME VALUE SECONDS   sets a value with a source timestamp in seconds since 1970
//   trust FILE               trusts a client's certificate
// Prints `held NAME VALUE` when every item that monitors the variable has received this value.
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Security;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.eclipse.milo.opcua.sdk.core.AccessLevel;
import org.eclipse.milo.opcua.sdk.core.Reference;
import org.eclipse.milo.opcua.sdk.server.EndpointConfig;
import org.eclipse.milo.opcua.sdk.server.ManagedNamespaceWithLifecycle;
import org.eclipse.milo.opcua.sdk.server.OpcUaServer;
import org.eclipse.milo.opcua.sdk.server.OpcUaServerConfig;
import org.eclipse.milo.opcua.sdk.server.identity.AnonymousIdentityValidator;
import org.eclipse.milo.opcua.sdk.server.identity.CompositeValidator;
import org.eclipse.milo.opcua.sdk.server.identity.UsernameIdentityValidator;
import org.eclipse.milo.opcua.sdk.server.identity.X509IdentityValidator;
import org.eclipse.milo.opcua.sdk.server.items.DataItem;
import org.eclipse.milo.opcua.sdk.server.items.MonitoredItem;
import org.eclipse.milo.opcua.sdk.server.model.variables.AnalogItemTypeNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaDataTypeNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaFolderNode;
import org.eclipse.milo.opcua.sdk.server.nodes.UaVariableNode;
import org.eclipse.milo.opcua.sdk.server.nodes.factories.NodeFactory;
import org.eclipse.milo.opcua.sdk.server.util.SubscriptionModel;
import org.eclipse.milo.opcua.stack.core.NodeIds;
import org.eclipse.milo.opcua.stack.core.security.DefaultApplicationGroup;
import org.eclipse.milo.opcua.stack.core.security.DefaultCertificateManager;
import org.eclipse.milo.opcua.stack.core.security.DefaultServerCertificateValidator;
import org.eclipse.milo.opcua.stack.core.security.MemoryCertificateQuarantine;
import org.eclipse.milo.opcua.stack.core.security.MemoryCertificateStore;
import org.eclipse.milo.opcua.stack.core.security.MemoryTrustListManager;
import org.eclipse.milo.opcua.stack.core.security.RsaSha256CertificateFactory;
import org.eclipse.milo.opcua.stack.core.security.SecurityPolicy;
import org.eclipse.milo.opcua.stack.core.transport.TransportProfile;
import org.eclipse.milo.opcua.stack.core.types.builtin.ByteString;
import org.eclipse.milo.opcua.stack.core.types.builtin.DataValue;
import org.eclipse.milo.opcua.stack.core.types.builtin.DateTime;
import org.eclipse.milo.opcua.stack.core.types.builtin.ExtensionObject;
import org.eclipse.milo.opcua.stack.core.types.builtin.LocalizedText;
import org.eclipse.milo.opcua.stack.core.types.builtin.NodeId;
import org.eclipse.milo.opcua.stack.core.types.builtin.QualifiedName;
import org.eclipse.milo.opcua.stack.core.types.builtin.StatusCode;
import org.eclipse.milo.opcua.stack.core.types.builtin.Variant;
import org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.UInteger;
import org.eclipse.milo.opcua.stack.core.types.builtin.unsigned.Unsigned;
import org.eclipse.milo.opcua.stack.core.types.enumerated.MessageSecurityMode;
import org.eclipse.milo.opcua.stack.core.types.enumerated.StructureType;
import org.eclipse.milo.opcua.stack.core.types.structured.BuildInfo;
import org.eclipse.milo.opcua.stack.core.types.structured.EUInformation;
import org.eclipse.milo.opcua.stack.core.types.structured.Range;
import org.eclipse.milo.opcua.stack.core.types.structured.StructureDefinition;
import org.eclipse.milo.opcua.stack.core.types.structured.StructureField;
import org.eclipse.milo.opcua.stack.core.util.SelfSignedCertificateBuilder;
import org.eclipse.milo.opcua.stack.core.util.SelfSignedCertificateGenerator;
import org.eclipse.milo.opcua.stack.transport.server.tcp.OpcTcpServerTransport;
import org.eclipse.milo.opcua.stack.transport.server.tcp.OpcTcpServerTransportConfig;

public final class MiloServer {
  private static final String APPLICATION = "urn:tagferry:test:milo";
  private static final String LINE = "urn:tagferry:test:line";
  private static final char[] NO_SECRET = "test".toCharArray();

  public static void main(String[] arguments) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    Path folder = Path.of(arguments[0]);
    int port = Integer.parseInt(arguments[1]);
    Identity identity = Identity.in(folder);
    MemoryTrustListManager trusted = new MemoryTrustListManager();
    OpcUaServer server = serverOn(port, identity, trusted);
    for (int i = 2; i < arguments.length; i++) server.getNamespaceTable().add(arguments[i]);
    Line line = new Line(server);
    line.startup();
    server.startup().get();
    System.out.println(port);

    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String command = commands.readLine(); command != null; command = commands.readLine()) {
      String[] words = command.split(" ");
      if (words[0].equals("trust")) trusted.addTrustedCertificate(certificateIn(Path.of(words[1])));
      else line.set(words[1], words[2], new BigDecimal(words[3]));
    }
    line.shutdown();
    server.shutdown().get();
    System.exit(0);
  }

  private static X509Certificate certificateIn(Path file) throws Exception {
    try (var stream = new FileInputStream(file.toFile())) {
      return (X509Certificate)
          java.security.cert.CertificateFactory.getInstance("X.509").generateCertificate(stream);
    }
  }

  private static OpcUaServer serverOn(int port, Identity identity, MemoryTrustListManager trusted)
      throws Exception {
    var quarantine = new MemoryCertificateQuarantine();
    var factory =
        new RsaSha256CertificateFactory() {
          @Override
          protected KeyPair createRsaSha256KeyPair() {
            return identity.keys();
          }

          @Override
          protected X509Certificate[] createRsaSha256CertificateChain(KeyPair keys) {
            return new X509Certificate[] {identity.certificate()};
          }
        };
    var group =
        DefaultApplicationGroup.createAndInitialize(
            trusted,
            new MemoryCertificateStore(),
            factory,
            new DefaultServerCertificateValidator(trusted, quarantine));
    var certified = new X509IdentityValidator(certificate -> true);
    var users =
        new UsernameIdentityValidator(
            login -> login.getUsername().equals("reader") && login.getPassword().equals("rope"));
    var config =
        OpcUaServerConfig.builder()
            .setApplicationUri(APPLICATION)
            .setApplicationName(LocalizedText.english("line"))
            .setProductUri(APPLICATION)
            .setBuildInfo(new BuildInfo(APPLICATION, "test", "milo", "1", "", DateTime.now()))
            .setEndpoints(endpoints(port, identity.certificate()))
            .setCertificateManager(new DefaultCertificateManager(quarantine, group))
            .setIdentityValidator(new CompositeValidator(AnonymousIdentityValidator.INSTANCE, users, certified))
            .build();
    return new OpcUaServer(
        config, profile -> new OpcTcpServerTransport(OpcTcpServerTransportConfig.newBuilder().build()));
  }

  private static Set<EndpointConfig> endpoints(int port, X509Certificate certificate) {
    EndpointConfig.Builder any =
        EndpointConfig.newBuilder()
            .setBindAddress("127.0.0.1")
            .setHostname("127.0.0.1")
            .setBindPort(port)
            .setTransportProfile(TransportProfile.TCP_UASC_UABINARY)
            .setCertificate(certificate)
            .addTokenPolicies(
                OpcUaServerConfig.USER_TOKEN_POLICY_ANONYMOUS,
                OpcUaServerConfig.USER_TOKEN_POLICY_USERNAME,
                OpcUaServerConfig.USER_TOKEN_POLICY_X509);
    Set<EndpointConfig> all = new LinkedHashSet<>();
    all.add(
        any.copy().setSecurityPolicy(SecurityPolicy.None).setSecurityMode(MessageSecurityMode.None).build());
    for (SecurityPolicy policy : List.of(SecurityPolicy.Basic256Sha256, SecurityPolicy.Aes128_Sha256_RsaOaep))
      for (MessageSecurityMode mode : List.of(MessageSecurityMode.Sign, MessageSecurityMode.SignAndEncrypt))
        all.add(any.copy().setSecurityPolicy(policy).setSecurityMode(mode).build());
    return all;
  }

  /** The server's keys. The same folder gives the same ones. */
  private record Identity(KeyPair keys, X509Certificate certificate) {
    static Identity in(Path folder) throws Exception {
      Files.createDirectories(folder);
      Path file = folder.resolve("server.p12");
      KeyStore store = KeyStore.getInstance("PKCS12");
      if (Files.exists(file)) {
        try (var stream = new FileInputStream(file.toFile())) {
          store.load(stream, NO_SECRET);
        }
      } else {
        store.load(null, NO_SECRET);
        KeyPair keys = SelfSignedCertificateGenerator.generateRsaKeyPair(2048);
        X509Certificate certificate =
            new SelfSignedCertificateBuilder(keys)
                .setCommonName("line")
                .setApplicationUri(APPLICATION)
                .addIpAddress("127.0.0.1")
                .build();
        store.setKeyEntry("server", keys.getPrivate(), NO_SECRET, new X509Certificate[] {certificate});
        try (var stream = new FileOutputStream(file.toFile())) {
          store.store(stream, NO_SECRET);
        }
      }
      var certificate = (X509Certificate) store.getCertificate("server");
      var secret = (PrivateKey) store.getKey("server", NO_SECRET);
      return new Identity(new KeyPair(certificate.getPublicKey(), secret), certificate);
    }
  }

  /** The variables below `Objects/Line`. */
  private static final class Line extends ManagedNamespaceWithLifecycle {
    private final SubscriptionModel subscriptions;
    private final Map<String, UaVariableNode> variables = new LinkedHashMap<>();
    private final Map<DataItem, Watched> watched = new ConcurrentHashMap<>();

    Line(OpcUaServer server) {
      super(server, LINE);
      subscriptions = new SubscriptionModel(server, this);
      getLifecycleManager().addLifecycle(subscriptions);
      getLifecycleManager().addStartupTask(this::addNodes);
    }

    /** Sets a value, converted to the variable's type. */
    void set(String name, String text, BigDecimal seconds) {
      UaVariableNode variable = variables.get(name);
      Object old = variable.getValue().getValue().getValue();
      Instant at = Instant.EPOCH.plusNanos(seconds.movePointRight(9).longValueExact());
      Object value;
      if (old instanceof Double) value = Double.valueOf(text);
      else if (old instanceof Float) value = Float.valueOf(text);
      else if (old instanceof Boolean) value = Boolean.valueOf(text);
      else if (old instanceof Long) value = Long.valueOf(text);
      else if (old instanceof Integer) value = Integer.valueOf(text);
      else if (old instanceof String) value = text;
      else value = Unsigned.uint(text);
      DateTime time = new DateTime(at);
      variable.setValue(new DataValue(new Variant(value), StatusCode.GOOD, time, time));
    }

    private void addNodes() {
      var line =
          new UaFolderNode(
              getNodeContext(), newNodeId("Line"), newQualifiedName("Line"), LocalizedText.english("Line"));
      getNodeManager().addNode(line);
      line.addReference(
          new Reference(line.getNodeId(), NodeIds.Organizes, NodeIds.ObjectsFolder.expanded(), false));
      addTemperature(line);
      add(line, "Count", NodeIds.UInt32, Unsigned.uint(0), -1);
      add(line, "Big", NodeIds.Int64, 0L, -1);
      add(line, "Ratio", NodeIds.Float, 0.5f, -1);
      add(line, "State", NodeIds.Int32, 0, -1);
      add(line, "Running", NodeIds.Boolean, false, -1);
      add(line, "Mode", NodeIds.String, "auto", -1);
      add(line, "List", NodeIds.Double, new Double[] {1.5, 2.5}, 1);
      Range range = new Range(-10.5, 40.25);
      var structure = ExtensionObject.encode(getServer().getStaticEncodingContext(), range);
      add(line, "Window", NodeIds.Range, structure, -1);
      addDrive(line);
    }

    /** A structure with a nested one and a matrix, encoded by hand. The server publishes its type definition. */
    private void addDrive(UaFolderNode line) {
      NodeId axis = addStructure("AxisType", field("Position", NodeIds.Double, -1));
      NodeId drive =
          addStructure(
              "DriveType",
              field("Running", NodeIds.Boolean, -1),
              field("Axis", axis, -1),
              field("Axes", axis, 1),
              field("Grid", NodeIds.Int16, 2));
      var body = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
      body.put((byte) 1).putDouble(1.5);
      body.putInt(2).putDouble(2.5).putDouble(3.5);
      body.putInt(2).putInt(2).putInt(2);
      for (short value = 1; value <= 4; value++) body.putShort(value);
      byte[] bytes = Arrays.copyOf(body.array(), body.position());
      var encoded = ExtensionObject.of(ByteString.of(bytes), newNodeId("DriveType.Binary"));
      add(line, "Drive", drive, encoded, -1);
    }

    private static StructureField field(String name, NodeId type, int valueRank) {
      UInteger[] dimensions = valueRank == 2 ? new UInteger[] {Unsigned.uint(0), Unsigned.uint(0)} : null;
      return new StructureField(
          name, LocalizedText.NULL_VALUE, type, valueRank, dimensions, Unsigned.uint(0), false);
    }

    private NodeId addStructure(String name, StructureField... fields) {
      NodeId id = newNodeId(name);
      NodeId encoding = newNodeId(name + ".Binary");
      var type =
          new UaDataTypeNode(
              getNodeContext(),
              id,
              newQualifiedName(name),
              LocalizedText.english(name),
              LocalizedText.NULL_VALUE,
              Unsigned.uint(0),
              Unsigned.uint(0),
              false);
      type.setDataTypeDefinition(
          new StructureDefinition(encoding, NodeIds.Structure, StructureType.Structure, fields));
      type.addReference(new Reference(id, NodeIds.HasSubtype, NodeIds.Structure.expanded(), false));
      type.addReference(new Reference(id, NodeIds.HasEncoding, encoding.expanded(), true));
      getNodeManager().addNode(type);
      return id;
    }

    private void addTemperature(UaFolderNode line) {
      try {
        var all =
            new NodeFactory.InstantiationCallback() {
              @Override
              public boolean includeOptionalNode(NodeId type, QualifiedName name) {
                return true;
              }
            };
        var node =
            (AnalogItemTypeNode) getNodeFactory().createNode(newNodeId("Temp"), NodeIds.AnalogItemType, all);
        node.setBrowseName(newQualifiedName("Temp"));
        node.setDisplayName(LocalizedText.english("Temp"));
        node.setDescription(LocalizedText.english("in the middle"));
        node.setDataType(NodeIds.Double);
        node.setEuRange(new Range(0.0, 200.0));
        node.setEngineeringUnits(
            new EUInformation("", 4408652, LocalizedText.english("°C"), LocalizedText.english("")));
        node.setValue(new DataValue(new Variant(20.0)));
        getNodeManager().addNode(node);
        line.addOrganizes(node);
        variables.put("Temp", node);
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }

    private void add(UaFolderNode line, String name, NodeId type, Object value, int valueRank) {
      UaVariableNode node =
          new UaVariableNode.UaVariableNodeBuilder(getNodeContext())
              .setNodeId(newNodeId(name))
              .setAccessLevel(AccessLevel.READ_ONLY)
              .setUserAccessLevel(AccessLevel.READ_ONLY)
              .setBrowseName(newQualifiedName(name))
              .setDisplayName(LocalizedText.english(name))
              .setDataType(type)
              .setValueRank(valueRank)
              .setTypeDefinition(NodeIds.BaseDataVariableType)
              .build();
      node.setValue(new DataValue(new Variant(value)));
      getNodeManager().addNode(node);
      line.addOrganizes(node);
      variables.put(name, node);
    }

    /** A monitored item as the sampling sees it. Records the last value that it received. */
    private final class Watched implements InvocationHandler {
      private final DataItem item;
      private final DataItem proxy =
          (DataItem) Proxy.newProxyInstance(DataItem.class.getClassLoader(), new Class<?>[] {DataItem.class}, this);
      private volatile Object value;

      Watched(DataItem item) {
        this.item = item;
      }

      @Override
      public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        if (method.getName().equals("equals")) return self == arguments[0];
        if (method.getName().equals("hashCode")) return System.identityHashCode(self);
        Object result;
        try {
          result = method.invoke(item, arguments);
        } catch (InvocationTargetException error) {
          throw error.getCause();
        }
        if (method.getName().equals("setValue")) {
          Object given = ((DataValue) arguments[0]).getValue().getValue();
          boolean other = given != null && !given.equals(value);
          value = given;
          if (other) tell(given);
        }
        return result;
      }

      private void tell(Object given) {
        NodeId id = item.getReadValueId().getNodeId();
        for (Watched each : watched.values())
          if (each.item.getReadValueId().getNodeId().equals(id)
              && each.item.isSamplingEnabled()
              && !given.equals(each.value)) return;
        System.out.println("held " + id.getIdentifier() + " " + given);
      }
    }

    private List<DataItem> watchedOf(List<DataItem> items) {
      return items.stream().map(item -> watched.computeIfAbsent(item, Watched::new).proxy).toList();
    }

    @Override
    public void onDataItemsCreated(List<DataItem> items) {
      subscriptions.onDataItemsCreated(watchedOf(items));
    }

    @Override
    public void onDataItemsModified(List<DataItem> items) {
      subscriptions.onDataItemsModified(watchedOf(items));
    }

    @Override
    public void onDataItemsDeleted(List<DataItem> items) {
      subscriptions.onDataItemsDeleted(watchedOf(items));
      items.forEach(watched::remove);
    }

    @Override
    public void onMonitoringModeChanged(List<MonitoredItem> items) {
      List<MonitoredItem> proxies = new ArrayList<>(items);
      proxies.replaceAll(
          item -> item instanceof DataItem data && watched.containsKey(data) ? watched.get(data).proxy : item);
      subscriptions.onMonitoringModeChanged(proxies);
    }
  }
}
