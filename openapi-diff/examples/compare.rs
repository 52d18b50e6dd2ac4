//! Prints the comparison of two files as JSON: `cargo run -p openapi-diff --example compare -- old.json new.json`.

use std::{env, error::Error, fs, path::Path};

use openapi_diff::{Document, diff};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<_> = env::args().skip(1).collect();
    let [old, new] = &files[..] else { return Err("give two files: the old document and the new document".into()) };
    print!("{}", diff(&document(Path::new(old))?, &document(Path::new(new))?).json());
    Ok(())
}

/// A document with the files of its folder that it refers to.
fn document(path: &Path) -> Result<Document, Box<dyn Error>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut load = |file: &str| fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    Ok(Document::read_with(&fs::read_to_string(path)?, name, &mut load)?)
}
