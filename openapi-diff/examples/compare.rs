//! Prints the comparison of two files as JSON: `cargo run -p openapi-diff --example compare -- old.json new.json`.

use std::{env, error::Error, fs};

use openapi_diff::{Document, diff};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<_> = env::args().skip(1).collect();
    let [old, new] = &files[..] else { return Err("give two files: the old document and the new document".into()) };
    print!("{}", diff(&Document::read(&fs::read_to_string(old)?)?, &Document::read(&fs::read_to_string(new)?)?).json());
    Ok(())
}
