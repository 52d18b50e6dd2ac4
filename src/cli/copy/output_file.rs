//! The file that `counterpart copy` writes, in the format of `counterpart export`. It is written from the records in the copy's SQLite
//! database, and replaced atomically.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{
    cli::Failed,
    domain::{ids::StoreId, ndjson_records::RecordKind},
    store::{Db, change_feed_copy::CopiedRecord},
};

/// The number of records per query.
const PAGE: i64 = 1_000;

/// Returns the path of the SQLite database next to a file. The database contains the records of the copy, and the copy's position in
/// the change feed.
pub fn state_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".copy-state");
    name.into()
}

/// Writes the records of the copy to a temporary file, and replaces the copy's file by it.
pub async fn write(db: &Db, store: &StoreId, file: &Path) -> Result<(), Failed> {
    let named = |error: io::Error| Failed(format!("`{}` cannot be written: {error}", file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = NamedTempFile::new_in(folder).map_err(named)?;
    let mut out = BufWriter::new(temporary.as_file_mut());
    for kind in RecordKind::ALL {
        let mut after: Option<String> = None;
        loop {
            let page = db.copied_records(store, kind, after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            for record in &page {
                write_line(&mut out, record).map_err(named)?;
            }
        }
    }
    out.flush().map_err(named)?;
    drop(out);
    temporary.as_file().sync_all().map_err(named)?;
    temporary.persist(file).map_err(|error| named(error.error))?;
    Ok(())
}

/// Writes a record as one line in the format of an export.
fn write_line(out: &mut impl Write, CopiedRecord { kind, record, as_stored, .. }: &CopiedRecord) -> io::Result<()> {
    let (record, mark) = (record.as_deref().unwrap_or("null"), if *as_stored { ",\"asStored\":true" } else { "" });
    writeln!(out, "{{\"kind\":\"{}\",\"record\":{record}{mark}}}", kind.name())
}
