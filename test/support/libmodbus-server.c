/*
 * A third-party Modbus server: libmodbus over TCP or a pair of pseudo terminals.
 *
 * Arguments: "tcp" or "rtu", then words for both register tables from address 0, as 0x1234.
 * Prints the port, or the path of the client's end of the line, once it answers. Ends when its standard input does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <modbus.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

static int masters[2];

static void *carry(void *from) {
  int source = masters[*(int *)from], target = masters[1 - *(int *)from];
  char bytes[512];
  ssize_t count;
  while ((count = read(source, bytes, sizeof bytes)) > 0)
    if (write(target, bytes, count) < 0) break;
  return NULL;
}

static const char *terminal(int index) {
  static char names[2][64];
  struct termios raw;
  masters[index] = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(masters[index]);
  unlockpt(masters[index]);
  strncpy(names[index], ptsname(masters[index]), sizeof names[index] - 1);
  int slave = open(names[index], O_RDWR | O_NOCTTY); /* stays open: a line does not end when one side is not there yet */
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  return names[index];
}

static void *end_with_input(void *unused) {
  char byte;
  while (read(0, &byte, 1) > 0) {}
  _exit(0);
  return unused;
}

int main(int argc, char **argv) {
  int rtu = argc > 1 && strcmp(argv[1], "rtu") == 0;
  pthread_t thread;
  modbus_mapping_t *map = modbus_mapping_new(16, 16, 200, 200);
  for (int i = 2; i < argc && i - 2 < 200; i++)
    map->tab_registers[i - 2] = map->tab_input_registers[i - 2] = (uint16_t)strtol(argv[i], NULL, 0);
  map->tab_bits[1] = map->tab_input_bits[0] = 1;
  pthread_create(&thread, NULL, end_with_input, NULL);

  uint8_t request[MODBUS_TCP_MAX_ADU_LENGTH];
  modbus_t *context;
  if (rtu) {
    static int ends[2] = {0, 1};
    const char *ours = terminal(0), *theirs = terminal(1);
    for (int i = 0; i < 2; i++) pthread_create(&thread, NULL, carry, &ends[i]);
    context = modbus_new_rtu(ours, 19200, 'N', 8, 1);
    modbus_set_slave(context, 1);
    if (modbus_connect(context) != 0) return 1;
    printf("%s\n", theirs);
    fflush(stdout);
    for (;;) {
      int length = modbus_receive(context, request);
      if (length > 0) modbus_reply(context, request, length, map);
    }
  }
  context = modbus_new_tcp("127.0.0.1", 0);
  int listening = modbus_tcp_listen(context, 4);
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  getsockname(listening, (struct sockaddr *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    if (modbus_tcp_accept(context, &listening) < 0) return 1;
    for (int length; (length = modbus_receive(context, request)) >= 0;)
      if (length > 0) modbus_reply(context, request, length, map);
    modbus_close(context);
  }
}
