//! Export of a store as NDJSON, in the format of an import. A kind of records comes after the kinds to which its records refer; the records
//! of a kind are in the order of their ids. Called by `cli`. Guarantees: a consistent snapshot, a bounded number of records in memory, and
//! byte-identical output for equal records.

use std::io::{self, Write};

use crate::{
    domain::{
        ids::StoreId,
        ndjson_records::{Record, RecordKind},
    },
    store::{self, Db},
};

/// The maximum number of records per read.
const PAGE: u64 = 1_000;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("there is no store `{0}`")]
    NoStore(StoreId),
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
}

#[derive(serde::Serialize)]
struct ExportLine<'a> {
    kind: &'static str,
    record: &'a Record,
    /// Marks a record that is older than a validation rule and breaks it, so that an import accepts the record.
    #[serde(rename = "asStored", skip_serializing_if = "std::ops::Not::not")]
    as_stored: bool,
}

/// Writes every record of a store; returns their number.
pub async fn run(db: &Db, store: &StoreId, out: &mut (impl Write + Send)) -> Result<u64, ExportError> {
    let export = db.begin_export(store).await?.ok_or_else(|| ExportError::NoStore(store.clone()))?;
    let mut count = 0;
    let mut buffer = Vec::new();
    for kind in RecordKind::ALL {
        let mut after: Option<String> = None;
        loop {
            let page = export.page(kind, after.as_deref(), PAGE).await?;
            buffer.clear();
            for record in &page {
                serde_json::to_writer(&mut buffer, &ExportLine { kind: kind.name(), record, as_stored: record.breaks_a_later_rule() })
                    .map_err(io::Error::from)?;
                buffer.push(b'\n');
            }
            out.write_all(&buffer)?;
            count += page.len() as u64;
            if (page.len() as u64) < PAGE {
                break;
            }
            after = page.last().map(|record| record.id().to_owned());
        }
    }
    out.flush()?;
    Ok(count)
}
