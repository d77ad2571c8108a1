"""A Modbus server that is not ours: pymodbus over TCP, UDP or a pair of pseudo terminals.

Takes one JSON document as its argument: { transport, framer, units: { "1": { hr: { "0": [1, 2] }, ... } }, identity: { "0": "Acme" } }.
Prints one JSON line, { port } or { path }, once it answers; ends when its standard input does.
"""

import asyncio
import json
import os
import sys
import threading
import tty

from pymodbus import ModbusDeviceIdentification
from pymodbus.datastore import ModbusDeviceContext, ModbusServerContext, ModbusSparseDataBlock
from pymodbus.framer import FramerType
from pymodbus.server import ModbusSerialServer, ModbusTcpServer, ModbusUdpServer

FRAMERS = {"socket": FramerType.SOCKET, "rtu": FramerType.RTU, "ascii": FramerType.ASCII}


def block(table):
    # The device context counts from 1.
    values = {int(start) + 1 + i: value for start, run in table.items() for i, value in enumerate(run)}
    return ModbusSparseDataBlock(values or {65535: 0})


def device(unit):
    tables = {name: block(unit.get(name, {})) for name in ("co", "di", "hr", "ir")}
    return ModbusDeviceContext(co=tables["co"], di=tables["di"], hr=tables["hr"], ir=tables["ir"])


def carry(source, target, log):
    while True:
        try:
            data = os.read(source, 4096)
        except OSError:
            return
        os.write(target, data)
        if log:
            log.write(data)


def line_log():
    """Keeps what comes to the server, where TAGFERRY_LINE_LOG names a folder."""
    folder = os.environ.get("TAGFERRY_LINE_LOG")
    return open(os.path.join(folder, f"{os.getpid()}.line"), "wb", buffering=0) if folder else None


def serial_pair():
    """Two terminals that are connected to each other, as by a null modem cable."""
    ends = [os.openpty(), os.openpty()]
    for _master, slave in ends:
        tty.setraw(slave)
    for source, target, log in ((0, 1, None), (1, 0, line_log())):
        threading.Thread(target=carry, args=(ends[source][0], ends[target][0], log), daemon=True).start()
    return [os.ttyname(slave) for _master, slave in ends]


async def main():
    wanted = json.loads(sys.argv[1])
    context = ModbusServerContext({int(n): device(unit) for n, unit in wanted["units"].items()}, single=False)
    framer = FRAMERS[wanted["framer"]]
    identity = ModbusDeviceIdentification(info={int(n): text for n, text in wanted.get("identity", {}).items()})
    if wanted["transport"] == "serial":
        ours, theirs = serial_pair()
        server = ModbusSerialServer(context, framer=framer, port=ours, baudrate=19200, ignore_missing_devices=True, identity=identity)
    elif wanted["transport"] == "udp":
        server = ModbusUdpServer(context, framer=framer, address=("127.0.0.1", 0), ignore_missing_devices=True, identity=identity)
    else:
        server = ModbusTcpServer(context, framer=framer, address=("127.0.0.1", 0), ignore_missing_devices=True, identity=identity)
    await server.serve_forever(background=True)
    if wanted["transport"] == "serial":
        ready = {"path": theirs}
    elif wanted["transport"] == "udp":
        ready = {"port": server.transport.get_extra_info("sockname")[1]}
    else:
        ready = {"port": server.transport.sockets[0].getsockname()[1]}
    print(json.dumps(ready), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
