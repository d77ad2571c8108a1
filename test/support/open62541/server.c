/* An OPC UA server on open62541: prints its port, then does what standard input asks, and ends with it.
 *   set NAME VALUE    sets a variable below Objects/Line, stamped now
 *   count             prints "count SESSIONS SUBSCRIPTIONS"
 * Arguments: port (0: any), most sessions, most subscriptions (0: no limit), shortest publishing interval in ms, then
 * optionally certificate and key (DER): with them it offers security, and a user with a password. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <open62541/plugin/accesscontrol_default.h>
#include <open62541/plugin/log_stdout.h>
#include <open62541/plugin/certificategroup_default.h>
#include <open62541/server.h>
#include <open62541/server_config_default.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile UA_Boolean running = true;
static UA_UInt16 line;

static UA_UInt16 free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int probe = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(probe, (struct sockaddr *)&address, sizeof address) || getsockname(probe, (struct sockaddr *)&address, &size))
    exit(1);
  close(probe);
  return ntohs(address.sin_port);
}

static UA_ByteString contents(const char *path) {
  UA_ByteString bytes = UA_BYTESTRING_NULL;
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(1);
  fseek(file, 0, SEEK_END);
  UA_ByteString_allocBuffer(&bytes, (size_t)ftell(file));
  rewind(file);
  if (fread(bytes.data, 1, bytes.length, file) != bytes.length)
    exit(1);
  fclose(file);
  return bytes;
}

static void add_variable(UA_Server *server, const char *name) {
  UA_VariableAttributes attributes = UA_VariableAttributes_default;
  UA_Double value = 20;
  UA_Variant_setScalar(&attributes.value, &value, &UA_TYPES[UA_TYPES_DOUBLE]);
  attributes.displayName = UA_LOCALIZEDTEXT("", (char *)name);
  attributes.dataType = UA_TYPES[UA_TYPES_DOUBLE].typeId;
  attributes.minimumSamplingInterval = 10;
  UA_Server_addVariableNode(server, UA_NODEID_STRING(line, (char *)name), UA_NODEID_STRING(line, "Line"),
                            UA_NS0ID(HASCOMPONENT), UA_QUALIFIEDNAME(line, (char *)name),
                            UA_NS0ID(BASEDATAVARIABLETYPE), attributes, NULL, NULL);
}

static UA_UInt32 counter(UA_Server *server, UA_UInt32 id) {
  UA_Variant value;
  UA_UInt32 number = UINT32_MAX;
  if (UA_Server_readValue(server, UA_NODEID_NUMERIC(0, id), &value) == UA_STATUSCODE_GOOD) {
    if (UA_Variant_hasScalarType(&value, &UA_TYPES[UA_TYPES_UINT32]))
      number = *(UA_UInt32 *)value.data;
    UA_Variant_clear(&value);
  }
  return number;
}

static void obey(UA_Server *server, char *order) {
  char name[64];
  double number;
  if (sscanf(order, "set %63s %lf", name, &number) == 2) {
    UA_DataValue value;
    UA_DataValue_init(&value);
    UA_Double real = number;
    UA_Variant_setScalar(&value.value, &real, &UA_TYPES[UA_TYPES_DOUBLE]);
    value.hasValue = value.hasSourceTimestamp = true;
    value.sourceTimestamp = UA_DateTime_now();
    UA_Server_writeDataValue(server, UA_NODEID_STRING(line, name), value);
  } else if (!strncmp(order, "count", 5)) {
    printf("count %u %u\n", counter(server, UA_NS0ID_SERVER_SERVERDIAGNOSTICS_SERVERDIAGNOSTICSSUMMARY_CURRENTSESSIONCOUNT),
           counter(server, UA_NS0ID_SERVER_SERVERDIAGNOSTICS_SERVERDIAGNOSTICSSUMMARY_CURRENTSUBSCRIPTIONCOUNT));
    fflush(stdout);
  }
}

static void listen_to_input(UA_Server *server, void *data) {
  static char buffer[4096];
  static size_t filled;
  (void)data;
  ssize_t more = read(STDIN_FILENO, buffer + filled, sizeof buffer - 1 - filled);
  if (more == 0)
    running = false;
  if (more <= 0)
    return;
  filled += (size_t)more;
  buffer[filled] = 0;
  char *start = buffer;
  for (char *end; (end = strchr(start, '\n')); start = end + 1) {
    *end = 0;
    obey(server, start);
  }
  filled = strlen(start);
  memmove(buffer, start, filled);
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 1;
  UA_UInt16 port = (UA_UInt16)atoi(argv[1]);
  if (port == 0)
    port = free_port();
  UA_ServerConfig config;
  memset(&config, 0, sizeof config);
  config.logging = UA_Log_Stdout_new(UA_LOGLEVEL_FATAL);
  UA_StatusCode status;
  if (argc > 6) {
    UA_ByteString certificate = contents(argv[5]);
    UA_ByteString key = contents(argv[6]);
    status = UA_ServerConfig_setDefaultWithSecurityPolicies(&config, port, &certificate, &key, NULL, 0, NULL, 0, NULL, 0);
    UA_CertificateGroup_AcceptAll(&config.secureChannelPKI);
    UA_CertificateGroup_AcceptAll(&config.sessionPKI);
    UA_UsernamePasswordLogin logins[] = {{UA_STRING_STATIC("reader"), UA_STRING_STATIC("rope")}};
    if (status == UA_STATUSCODE_GOOD)
      status = UA_AccessControl_default(&config, true, NULL, 1, logins);
    UA_ByteString_clear(&certificate);
    UA_ByteString_clear(&key);
  } else {
    status = UA_ServerConfig_setMinimal(&config, port, NULL);
  }
  if (status != UA_STATUSCODE_GOOD)
    return 1;
  UA_String_clear(&config.applicationDescription.applicationUri);
  config.applicationDescription.applicationUri = UA_STRING_ALLOC("urn:tagferry:test:open62541");
  if (atoi(argv[2]) > 0)
    config.maxSessions = (UA_UInt16)atoi(argv[2]);
  config.maxSubscriptions = (UA_UInt32)atoi(argv[3]);
  if (atoi(argv[4]) > 0)
    config.publishingIntervalLimits.min = atoi(argv[4]);
  UA_Server *server = UA_Server_newWithConfig(&config);
  line = UA_Server_addNamespace(server, "urn:tagferry:test:line");
  UA_ObjectAttributes object = UA_ObjectAttributes_default;
  object.displayName = UA_LOCALIZEDTEXT("", "Line");
  UA_Server_addObjectNode(server, UA_NODEID_STRING(line, "Line"), UA_NS0ID(OBJECTSFOLDER), UA_NS0ID(ORGANIZES),
                          UA_QUALIFIEDNAME(line, "Line"), UA_NS0ID(BASEOBJECTTYPE), object, NULL, NULL);
  add_variable(server, "Temp");
  add_variable(server, "Count");
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  if (UA_Server_run_startup(server) != UA_STATUSCODE_GOOD)
    return 1;
  UA_Server_addRepeatedCallback(server, listen_to_input, NULL, 20, NULL);
  printf("%u\n", port);
  fflush(stdout);
  while (running)
    UA_Server_run_iterate(server, true);
  UA_Server_run_shutdown(server);
  UA_Server_delete(server);
  return 0;
}
