//! Generates Rust clients with progenitor, from the published OpenAPI documents in the folder that the variable `OPENAPI` names.

use std::{env, error::Error, fs, path::PathBuf};

use progenitor::{GenerationSettings, Generator, InterfaceStyle, TagStyle};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=OPENAPI");
    let (documents, out) = (PathBuf::from(env::var("OPENAPI")?), PathBuf::from(env::var("OUT_DIR")?));
    for revision in ["rev-a", "rev-b"] {
        let path = documents.join(format!("{revision}.json"));
        println!("cargo::rerun-if-changed={}", path.display());
        let mut document: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        // For a named schema that may be null, progenitor generates two types with the same name, which do not compile. So this script
        // removes `nullable` from the named schemas. The program never sends null, so nothing is missing.
        for schema in document["components"]["schemas"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            schema.as_object_mut().map(|schema| schema.remove("nullable"));
        }
        let document: openapiv3::OpenAPI = serde_json::from_value(document)?;
        let mut settings = GenerationSettings::default();
        settings.with_interface(InterfaceStyle::Builder).with_tag(TagStyle::Merged);
        let tokens = Generator::new(&settings).generate_tokens(&document)?;
        fs::write(out.join(format!("{revision}.rs")), prettyplease::unparse(&syn::parse2(tokens)?))?;
    }
    Ok(())
}
