//! The layers of this crate: each folder imports only from those before it, and no modules import each other in a circle.

#![allow(clippy::unwrap_used, reason = "a panic is the failure message of a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// From the bottom to the top. `proxy` is the composition root.
const LAYERS: [&str; 6] = ["transport", "reply", "observe", "host", "pipeline", "proxy"];

/// Modules, each with those that it imports. A module is named by its path: `pipeline::relay`.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn layers_import_only_from_those_below_them() {
    let graph = graph();
    assert!(graph.len() > 40, "the sources were not found");
    let rank = |module: &str| {
        let folder = module.split("::").next().unwrap();
        LAYERS.iter().position(|layer| *layer == folder).unwrap_or_else(|| panic!("{module} is in no layer"))
    };
    for (module, imports) in &graph {
        for import in imports {
            assert!(rank(import) <= rank(module), "{module} imports {import}, which is above it");
        }
    }
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let graph = graph();
    let mut finished = BTreeSet::new();
    for module in graph.keys() {
        visit(module, &graph, &mut Vec::new(), &mut finished);
    }
}

#[test]
fn transport_knows_nothing_of_conversations() {
    for (path, module) in sources() {
        if module.starts_with("transport") {
            let text = std::fs::read_to_string(path).unwrap();
            for name in ["tidegate_context", "tidegate_engine", "tidegate_store", "tidegate_wire"] {
                assert!(!text.contains(name), "{module} names {name}");
            }
        }
    }
}

fn visit(module: &str, graph: &Graph, path: &mut Vec<String>, finished: &mut BTreeSet<String>) {
    if finished.contains(module) {
        return;
    }
    assert!(!path.iter().any(|one| one == module), "a circle: {} -> {module}", path.join(" -> "));
    path.push(module.to_owned());
    for import in graph.get(module).into_iter().flatten() {
        visit(import, graph, path, finished);
    }
    path.pop();
    finished.insert(module.to_owned());
}

fn graph() -> Graph {
    let modules: BTreeSet<String> = sources().into_iter().map(|(_, module)| module).collect();
    let mut graph = Graph::new();
    for (path, module) in sources() {
        let text = std::fs::read_to_string(path).unwrap();
        let imports = imports(&text, &module).into_iter();
        let known = imports.filter_map(|path| longest_module(&path, &modules));
        graph.entry(module.clone()).or_default().extend(known.filter(|import| *import != module));
    }
    graph
}

/// Every path of this crate that a file names outside its tests.
fn imports(text: &str, module: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut paths = Vec::new();
    for (prefix, base) in
        [("crate::", String::new()), ("super::", format!("{parent}::")), ("self::", format!("{module}::"))]
    {
        for (at, _) in code.match_indices(prefix) {
            if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
            {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            let end = rest.find(|next: char| !(next.is_alphanumeric() || next == '_' || next == ':'));
            let path = &rest[..end.unwrap_or(rest.len())];
            // `{a, b}` behind a path names several modules.
            let group = rest[path.len()..].strip_prefix('{').and_then(|group| group.split_once('}'));
            let names: Vec<&str> = group.map_or(vec![""], |(group, _)| group.split(',').collect());
            paths.extend(names.iter().map(|name| format!("{base}{path}{}", name.trim())));
        }
    }
    paths
}

/// The module that a path leads into: the longest prefix of it that is one.
fn longest_module(path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    (1..=parts.len()).rev().map(|end| parts[..end].join("::")).find(|prefix| modules.contains(prefix))
}

/// The files of the crate but for tests, each with the module that it is.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && name != "tests" {
                folders.push(path);
            } else if path.is_file() && name != "tests" && name != "lib" {
                let module = path.strip_prefix(&root).unwrap().with_extension("");
                let module = module.to_str().unwrap().replace('/', "::");
                found.push((path, module.trim_end_matches("::mod").to_owned()));
            }
        }
    }
    found
}
