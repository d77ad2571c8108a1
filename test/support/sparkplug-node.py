"""An edge node that is not ours: pysparkplug. Arguments: port, user, password.

Reads from standard input: `data` sends the next values of node and device, `end` disconnects. Writes a line for
`born` and for each command it receives, as `command <metric>=<value>`.
"""
import sys

from pysparkplug import Client, DataType, Device, EdgeNode, Metric, get_current_timestamp

port, username, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def metric(name, datatype, value):
    return Metric(timestamp=get_current_timestamp(), name=name, datatype=datatype, value=value)


def say(text):
    print(text, flush=True)


def command(_, message):
    for received in message.payload.metrics:
        say(f"command {received.name}={received.value}")


node = EdgeNode(
    "G1",
    "E1",
    (
        metric("int8", DataType.INT8, -5),
        metric("int16", DataType.INT16, -300),
        metric("int32", DataType.INT32, -70000),
        metric("int64", DataType.INT64, -(2**40)),
        metric("uint32", DataType.UINT32, 4294967291),
        metric("float", DataType.FLOAT, 0.5),
        metric("double", DataType.DOUBLE, -1e300),
        metric("bool", DataType.BOOLEAN, True),
        metric("text", DataType.STRING, "x"),
    ),
    client=Client(client_id="edge-node", username=username, password=password),
    cmd_callback=command,
)
node.register(Device("D1", (metric("Line 1/Speed", DataType.INT32, 100),)))
node.connect("127.0.0.1", port=port, blocking=False)
value = 0
for line in sys.stdin:
    if line.strip() == "data":
        value -= 1
        node.update((metric("int32", DataType.INT32, value),))
        node.update_device("D1", (metric("Line 1/Speed", DataType.INT32, 100 + value),))
    elif line.strip() == "end":
        node.disconnect()
        break
