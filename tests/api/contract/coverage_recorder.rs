//! Records, for the coverage test ([`crate::coverage`]), which operations, responses, properties and headers of the OpenAPI documents
//! occurred while the tests ran. The environment variable `COUNTERPART_SEEN` names a folder. Each process writes two files in this folder,
//! named after its process id: `PID.seen` has a line for each part of a document that occurred, and `PID.requests` has a line for each
//! successful request that the document allows. If the variable is not set, nothing is recorded.

use std::{
    collections::HashSet,
    fs::File,
    io::Write,
    path::PathBuf,
    sync::{Mutex, OnceLock},
};

fn file(kind: &str) -> Option<File> {
    let folder = PathBuf::from(std::env::var_os("COUNTERPART_SEEN")?);
    std::fs::create_dir_all(&folder).expect("the folder of COUNTERPART_SEEN is created");
    let path = folder.join(format!("{}.{kind}", std::process::id()));
    Some(File::options().create(true).append(true).open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The file of the recorded parts, and the lines that this process has written to it.
struct Seen {
    lines: HashSet<String>,
    file: File,
}

/// Records that the part `what` of the document named `document` occurred. Writes each part once per process.
pub fn saw(document: &str, what: &str) {
    static SEEN: OnceLock<Option<Mutex<Seen>>> = OnceLock::new();
    let begun = || file("seen").map(|file| Mutex::new(Seen { lines: HashSet::new(), file }));
    let Some(seen) = SEEN.get_or_init(begun) else { return };
    let line = format!("{document} {what}\n");
    let Seen { lines, file } = &mut *seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !lines.contains(&line) {
        file.write_all(line.as_bytes()).expect("the record is written");
        lines.insert(line);
    }
}

/// Records a successful request that is valid according to the document named `document`.
pub fn counted(document: &str) {
    static COUNTED: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let Some(counted) = COUNTED.get_or_init(|| file("requests").map(Mutex::new)) else { return };
    let mut file = counted.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    file.write_all(format!("{document}\n").as_bytes()).expect("the count is written");
}
