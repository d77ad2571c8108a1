// Ends the program with one line on a version of Node that it cannot run on. Any version can parse this file: no syntax in
// it is newer than ECMAScript 5, and it is CommonJS and an ES module alike. The built program begins with it.
"use strict";
var leastNode = 24;
if (!(parseInt(process.versions.node, 10) >= leastNode)) {
  console.error(
    "tagferry: Node " +
      leastNode +
      " or newer is required, this is " +
      process.version +
      " (" +
      process.execPath +
      "); `npm ci` in the repository installs one, which `npm run tagferry` uses, and the Debian package has its own",
  );
  process.exit(1);
}
