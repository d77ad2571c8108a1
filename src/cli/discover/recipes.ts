// `tagferry browse --recipe`: complete configurations for devices and systems, which are files of the program.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Console } from "../terminal/console.ts";
import { columns, printResult } from "../terminal/text.ts";

/** In a release the recipes are in a folder next to the bundle. */
const folder = new URL(import.meta.url.endsWith(".ts") ? "../../../config/recipes/" : "./recipes/", import.meta.url);

/** In alphabetical order. Empty where the files are missing. */
export function recipeNames(): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

/** Prints the recipe of this name; `true` lists all, each with the first line of its file. */
export function printRecipe(asked: string | true, options: { readonly json?: boolean }, io: Console): void {
  if (asked !== true) {
    const text = textOf(asked);
    printResult(options, { name: asked, text }, () => [text.trimEnd()], io);
    return;
  }
  const recipes = recipeNames().map((name) => ({
    name,
    what: textOf(name).split("\n", 1)[0]?.slice("# ".length) ?? "",
  }));
  printResult(options, { recipes }, () => columns(recipes.map(({ name, what }) => [name, what])), io);
}

function textOf(name: string): string {
  return readFileSync(new URL(`${name}/recipe.yaml`, folder), "utf8");
}
