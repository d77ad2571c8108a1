"""One session of the public Python client, at the API version of its argument, against the address in the credentials on
standard input: every method that the version has, what came back as JSON on standard output."""
import json
import sys
from pyclarify import Calculation, Client, DataFrame, Item, ItemAggregation, Signal
from pyclarify.__utils__.exceptions import ApiVersionError
from pyclarify.query import Equal, Filter, GreaterOrEqual, In, NotEqual, Regex
from pyclarify.views.evaluate import GroupAggregation

version = sys.argv[1]
client = Client(json.load(sys.stdin), api_version=version)
out = {}


def kept(name, response):
    if response.error is not None:
        raise SystemExit(f"{name}: {response.error}")
    out[name] = json.loads(response.result.model_dump_json())
    return response.result


times = [f"2026-03-01T10:{minute:02}:00Z" for minute in range(6)]
kept("insert", client.insert(DataFrame(times=times, series={"level": [1, 2, 3, 4, None, 6], "pump": [0, 1, 1, 0, 0, 1]})))
kept(
    "save_signals",
    client.save_signals(
        input_ids=["level", "pump"],
        signals=[
            Signal(name="Level", engUnit="m", labels={"site": ["north"]}, sampleInterval="PT30S", gapDetection="PT5M"),
            Signal(name="Pump", valueType="enum", enumValues={"0": "off", "1": "on"}, annotations={"acme/line": "3"}),
        ],
    ),
)
signals = kept("select_signals", client.select_signals(filter=Filter(fields={"input": In(value=["level", "pump"])}), include=["item"], sort=["id"]))
ids = [signal.id for signal in signals.data]
kept(
    "publish_signals",
    client.publish_signals(
        signal_ids=ids,
        items=[Item(name="Level", engUnit="m", visible=True), Item(name="Pump", valueType="enum", enumValues={"0": "off", "1": "on"})],
    ),
)
kept("select_signals_published", client.select_signals(include=["item"], sort=["id"]))
items = kept("select_items", client.select_items(sort=["id"], total=True))
item_ids = [item.id for item in items.data]
for name, condition in {
    "equal": Filter(fields={"name": Equal(value="Level")}),
    "not_equal": Filter(fields={"name": NotEqual(value="Level")}),
    "regex": Filter(fields={"name": Regex(value="^L")}),
    "since": Filter(fields={"createdAt": GreaterOrEqual(value="2020-01-01T00:00:00Z")}),
    "both": Filter(fields={"name": Equal(value="Level")}) | Filter(fields={"name": Equal(value="Pump")}),
    "none": Filter(fields={"name": Equal(value="Nothing")}),
}.items():
    found = client.select_items(filter=condition)
    out[f"filter_{name}"] = [item.attributes.name for item in kept(f"select_{name}", found).data]
window = {"gte": "2026-03-01T10:00:00Z", "lt": "2026-03-01T10:10:00Z"}
kept("data_frame", client.data_frame(filter={"id": {"$in": item_ids}}, include=["item"], **window))
kept("data_frame_rollup", client.data_frame(rollup="PT5M", **window))
kept(
    "evaluate",
    client.evaluate(
        items=[
            ItemAggregation(id=item_ids[0], aggregation="max", alias="level"),
            ItemAggregation(id=item_ids[1], aggregation="state-seconds", state=1, alias="on"),
        ],
        calculations=[Calculation(formula="level * 2 + on", alias="both")],
        rollup="PT5M",
        **window,
    ),
)
if version == "1.1":
    try:
        client.connect_signals(item=item_ids[0])
    except ApiVersionError:
        out["connect_signals"] = "not at this version"
else:
    both = GroupAggregation(filter={"id": {"$in": item_ids}}, timeAggregation="max", groupAggregation="sum", alias="all")
    kept("evaluate_groups", client.evaluate(groups=[both], rollup="PT5M", **window))
    # A replacement sensor: its points and those of the first are one item's.
    kept("insert_new", client.insert(DataFrame(times=[times[3], "2026-03-01T10:07:00Z"], series={"level-new": [40, 8]})))
    new = Filter(fields={"input": Equal(value="level-new")})
    kept("dry_run", client.connect_signals(item=item_ids[0], filter=new, dry_run=True))
    kept("after_dry_run", client.select_signals(filter=new))
    kept("connect_signals", client.connect_signals(item=item_ids[0], filter=new, include=["item"], total=True))
    kept("data_frame_connected", client.data_frame(filter={"id": item_ids[0]}, **window))
    kept("disconnect_signals", client.disconnect_signals(filter=new))
    kept("data_frame_disconnected", client.data_frame(filter={"id": item_ids[0]}, **window))
    unknown = client.connect_signals(item="c000000000000000000g", filter=new)
    out["no_such_item"] = unknown.error.data.params
refused = client.select_items(filter={"nothing": 1})
out["refused"] = {"code": str(refused.error.code), "params": refused.error.data.params, "trace": refused.error.data.trace}
json.dump(out, sys.stdout)
