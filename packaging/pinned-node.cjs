// Runs a script of the repository: `node packaging/pinned-node.cjs SCRIPT ARGUMENT...`. If this Node is too old for it, the
// script runs on the one that package.json pins for the platform. `node_modules/.bin/node` is not reliable: npm before
// 11.6.2, which is that of Node 20 and 22, deletes it again, together with the packages of the other platforms, because
// each of them has a program of that name. Any Node can parse this file, like supported-node.cjs.
"use strict";
var fs = require("fs");
var path = require("path");
var manifest = require("../package.json");

var root = path.dirname(__dirname);
var programs = Object.keys(manifest.optionalDependencies).map(function (name) {
  return path.join(root, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node");
});
var pinned = programs.filter(function (program) {
  return fs.existsSync(program);
})[0];

process.argv.splice(1, 1);
process.argv[1] = path.resolve(process.argv[1]);

if (!pinned || parseInt(process.versions.node, 10) >= parseInt(manifest.engines.node.replace(">=", ""), 10)) {
  require("../src/cli/supported-node.cjs");
  require("module").runMain();
} else {
  // For what the script starts by the name `node`.
  process.env.PATH = path.dirname(pinned) + path.delimiter + process.env.PATH;
  var child = require("child_process").spawn(pinned, process.argv.slice(1), { stdio: "inherit" });
  // A terminal sends SIGINT to both processes.
  process.on("SIGINT", function () {});
  ["SIGTERM", "SIGHUP"].forEach(function (signal) {
    process.on(signal, function () {
      child.kill(signal);
    });
  });
  // The pinned Node does not start on musl, for example.
  child.on("error", function () {
    require("../src/cli/supported-node.cjs");
  });
  child.on("exit", function (code, signal) {
    process.exit(signal ? 128 + require("os").constants.signals[signal] : code);
  });
}
