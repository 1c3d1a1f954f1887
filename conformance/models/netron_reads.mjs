// What Netron's own reader makes of annotated models: names and shapes of value_info, a JSON line for each file.
//
//     node netron_reads.mjs FOLDER_OF_NETRON FILE...

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [from, ...files] = process.argv.slice(2);
// Its files are modules, which node believes of a folder that says so.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "netron-"));
for (const name of fs.readdirSync(from).filter((own) => own.endsWith(".js"))) fs.copyFileSync(path.join(from, name), path.join(folder, name));
fs.writeFileSync(path.join(folder, "package.json"), '{"type": "module"}');
const load = (name) => import(pathToFileURL(path.join(folder, name)).href);
try {
  const { onnx } = await load("onnx-proto.js");
  const { BinaryReader } = await load("protobuf.js");
  for (const file of files) {
    const { graph } = onnx.ModelProto.decode(BinaryReader.open(fs.readFileSync(file)));
    const shapes = graph.value_info.map(({ name, type }) => {
      const dims = type?.tensor_type?.shape?.dim;
      return [name, dims ? dims.map(({ dim_value, dim_param }) => dim_param || Number(dim_value ?? -1)) : null];
    });
    console.log(JSON.stringify({ nodes: graph.node.length, shapes }));
  }
} finally {
  fs.rmSync(folder, { recursive: true });
}
