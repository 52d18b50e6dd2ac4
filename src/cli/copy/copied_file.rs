//! The file of a copy: written whole from the records beside it, in the format of `counterpart export`, and put in place at once.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{
    cli::Failed,
    domain::{ids::StoreId, records::RecordKind},
    store::{Db, record_copy::CopiedRecord},
};

/// Records per read.
const PAGE: i64 = 1_000;

/// The path of the database beside a file, with the records and the position of the copy.
pub fn state_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".copy-state");
    name.into()
}

/// Replaces the file by the records of the copy.
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

/// The line of an export.
fn write_line(out: &mut impl Write, CopiedRecord { kind, record, as_stored, .. }: &CopiedRecord) -> io::Result<()> {
    let (record, mark) = (record.as_deref().unwrap_or("null"), if *as_stored { ",\"asStored\":true" } else { "" });
    writeln!(out, "{{\"kind\":\"{}\",\"record\":{record}{mark}}}", kind.name())
}
