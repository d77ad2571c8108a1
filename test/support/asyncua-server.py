# An OPC UA server on asyncua, an independent stack: prints its port, then sets variables as commanded on standard input, one
# JSON object a line ({"name": ..., "value": ..., "time": seconds since 1970, "id": ...}), tells of each
# when it is held ({"held": id}), counts its sessions and subscriptions when asked ({"count": id}), and ends with it.
import asyncio
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

from asyncua import Server, ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.permission_rules import SimpleRoleRuleset
from asyncua.common.type_dictionary_builder import DataTypeDictionaryBuilder
from asyncua.common.structures104 import new_enum, new_struct, new_struct_field
from asyncua.server.internal_session import InternalSession
from asyncua.server.user_managers import UserManager
from asyncua.crypto.permission_rules import User, UserRole
from cryptography.x509.oid import ExtendedKeyUsageOID

options = json.loads(sys.argv[1])
TYPES = {
    "Temp": ua.VariantType.Double,
    "Count": ua.VariantType.UInt32,
    "Big": ua.VariantType.Int64,
    "Ratio": ua.VariantType.Float,
    "State": ua.VariantType.Int32,
    "Running": ua.VariantType.Boolean,
    "Mode": ua.VariantType.String,
}
START = {"Temp": 20.0, "Count": 0, "Big": 0, "Ratio": 0.5, "State": 0, "Running": False, "Mode": "auto"}


class OneUser(UserManager):
    def get_user(self, iserver, username=None, password=None, certificate=None):
        if username is None:
            return User(role=UserRole.User, name="anonymous")
        if username == "reader" and password == "rope":
            return User(role=UserRole.User, name=username)
        return None


async def add_drive(server, line, index):
    """A structure with an optional field, a nested one, an array of them, a matrix and an enumeration."""
    mode = await new_enum(server, index, "DriveMode", ["Off", "Auto"])
    axis, _ = await new_struct(server, index, "Axis", [new_struct_field("Position", ua.VariantType.Double)])
    drive, _ = await new_struct(
        server,
        index,
        "Drive",
        [
            new_struct_field("Note", ua.VariantType.String, optional=True),
            new_struct_field("Speed", ua.VariantType.Float, optional=True),
            new_struct_field("Total", ua.VariantType.Int64),
            new_struct_field("Axis", axis),
            new_struct_field("Axes", axis, array=True),
            new_struct_field("Levels", ua.VariantType.UInt16, array=True),
            new_struct_field("Mode", mode),
        ],
    )
    types = await server.load_data_type_definitions()
    value = types["Drive"](
        Note=None,
        Speed=0.1,
        Total=-(2**53) - 1,
        Axis=types["Axis"](1.5),
        Axes=[types["Axis"](2.5), types["Axis"](3.5)],
        Levels=[7, 8],
        Mode=1,
    )
    await line.add_variable(
        ua.NodeId("Drive", index), ua.QualifiedName("Drive", index), value, datatype=drive.nodeid
    )
    matrix = ua.Variant([[1, 2, 3], [4, 5, 6]], ua.VariantType.Int32)
    await line.add_variable(ua.NodeId("Grid", index), ua.QualifiedName("Grid", index), matrix)


async def add_old(server, line, index):
    """A structure that is described in a dictionary alone, as before OPC UA 1.04."""
    builder = DataTypeDictionaryBuilder(server, index, "urn:tagferry:test:line", "OldTypes")
    await builder.init()
    axis = await builder.create_data_type("OldAxis")
    axis.add_field("Position", ua.VariantType.Double)
    drive = await builder.create_data_type("OldDrive")
    drive.add_field("Speed", ua.VariantType.Float)
    drive.add_field("Axis", axis)
    drive.add_field("Axes", axis, is_array=True)
    drive.add_field("Levels", ua.VariantType.UInt16, is_array=True)
    await builder.set_dict_byte_string()
    await server.load_type_definitions()
    value = ua.OldDrive()
    value.Speed = 0.1
    value.Axis.Position = 1.5
    value.Axes = [ua.OldAxis(), ua.OldAxis()]
    value.Axes[1].Position = 3.5
    value.Levels = [7, 8]
    await line.add_variable(ua.NodeId("Old", index), ua.QualifiedName("Old", index), value, datatype=drive.data_type)


async def main():
    port = options["port"]
    server = Server(user_manager=OneUser())
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
    await server.set_application_uri("urn:tagferry:test:asyncua")
    folder = Path(options["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    await setup_self_signed_certificate(
        folder / "key.pem",
        folder / "certificate.der",
        "urn:tagferry:test:asyncua",
        "127.0.0.1",
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
        {"countryName": "DE", "organizationName": "test"},
    )
    await server.load_certificate(str(folder / "certificate.der"))
    await server.load_private_key(str(folder / "key.pem"))
    secure = [
        ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
        ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
    ]
    server.set_security_policy(
        [ua.SecurityPolicyType.NoSecurity] + (secure if options.get("secure", True) else []),
        permission_ruleset=SimpleRoleRuleset(),
    )
    index = await server.register_namespace("urn:tagferry:test:line")
    line = await server.nodes.objects.add_object(ua.NodeId("Line", index), ua.QualifiedName("Line", index))
    nodes = {}
    for name, kind in TYPES.items():
        node = await line.add_variable(
            ua.NodeId(name, index), ua.QualifiedName(name, index), ua.Variant(START[name], kind)
        )
        nodes[name] = node
    temp = nodes["Temp"]
    await temp.write_attribute(
        ua.AttributeIds.Description,
        ua.DataValue(ua.Variant(ua.LocalizedText("in the middle"), ua.VariantType.LocalizedText)),
    )
    await temp.add_property(index, "EURange", ua.Range(Low=0.0, High=200.0))
    unit = ua.EUInformation(NamespaceUri="", UnitId=4408652, DisplayName=ua.LocalizedText("°C"))
    await temp.add_property(index, "EngineeringUnits", unit)
    await nodes["State"].add_property(index, "EnumStrings", [ua.LocalizedText(t) for t in ("Off", "On", "Fault")])
    await add_drive(server, line, index)
    await add_old(server, line, index)
    if options.get("history"):
        for name in options["history"]:
            await server.historize_node_data_change(nodes[name], period=None, count=10000)
    async with server:
        print(json.dumps({"port": port}), flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while text := await reader.readline():
            told = json.loads(text)
            if "count" in told:
                counted = {
                    "sessions": InternalSession._current_connections,
                    "subscriptions": len(server.iserver.subscription_service.subscriptions),
                }
                print(json.dumps({"counted": told["count"], **counted}), flush=True)
                continue
            at = datetime.fromtimestamp(told["time"], timezone.utc)
            value = ua.DataValue(
                ua.Variant(told["value"], TYPES[told["name"]]), SourceTimestamp=at, ServerTimestamp=at
            )
            await nodes[told["name"]].write_value(value)
            # Now it is in the queue of every item that monitors it.
            print(json.dumps({"held": told["id"]}), flush=True)


asyncio.run(main())
