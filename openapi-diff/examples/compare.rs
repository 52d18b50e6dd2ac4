//! Example program: compares two OpenAPI documents and prints the report as JSON.
//! Run it with `cargo run -p openapi-diff --example compare -- old.json new.json`.

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use openapi_diff::{Document, diff};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let files: Vec<_> = env::args().skip(1).collect();
    let [old, new] = &files[..] else { return Err("give two files: the old document and the new document".into()) };
    let report = diff(&document(Path::new(old))?, &document(Path::new(new))?);
    Ok(io::stdout().write_all(report.json().as_bytes())?)
}

/// Reads a document, and the files in the document's folder that its references lead to.
fn document(path: &Path) -> Result<Document, Box<dyn Error>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut load = |file: &str| fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    let named = |error: &dyn std::fmt::Display| format!("{} {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    Ok(Document::read_with(&text, name, &mut load).map_err(|error| named(&error))?)
}
