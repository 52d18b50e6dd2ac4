//! Sources of OpenAPI documents: a file, standard input, a URL, or a file of a git revision (`git:REV:PATH`).
//!
//! References to other files are resolved in the same source, below the folder of the document. A reference or a symbolic link that leads
//! out of that folder is refused.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::Command,
};

use openapi_diff::Document;
use reqwest::redirect::Policy;
use tokio::runtime::Handle;
use url::Url;

use crate::cli::{
    Failed,
    http_client::{client, explained},
};

/// The size limit of a file, in bytes.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024 * 1024;

enum DocumentSource {
    Input,
    File(PathBuf),
    Url {
        url: Url,
        /// Whether the URL comes from a reference in a document, not from the user. Redirects of such a URL are not followed: otherwise a
        /// document could make this machine fetch any URL.
        is_referenced: bool,
    },
    Git {
        revision: String,
        path: String,
    },
}

/// Reads the document that an argument names, and the files to which the document refers.
pub(super) fn document(argument: &str) -> Result<Document, Failed> {
    let source = DocumentSource::of(argument)?;
    let text = source.text().map_err(|reason| Failed(format!("{} cannot be read: {reason}", named(argument))))?;
    let read = match &source {
        DocumentSource::Input => Document::read(&text),
        _ => Document::read_with(&text, &source.name(), &mut |file| source.referenced_source(file)?.text()),
    };
    let document = read.map_err(|error| Failed(format!("{} {error}", named(argument))))?;
    Ok(match source {
        DocumentSource::Url { url, .. } => document.served_by(&url.origin().ascii_serialization()),
        _ => document,
    })
}

/// Reads the text of a file or of standard input.
pub(super) fn text(argument: &str) -> Result<String, Failed> {
    let source = if argument == "-" { DocumentSource::Input } else { DocumentSource::File(argument.into()) };
    source.text().map_err(|reason| Failed(format!("{} cannot be read: {reason}", named(argument))))
}

fn named(argument: &str) -> &str {
    if argument == "-" { "standard input" } else { argument }
}

impl DocumentSource {
    fn of(argument: &str) -> Result<Self, Failed> {
        if argument == "-" {
            return Ok(Self::Input);
        }
        if argument.starts_with("http://") || argument.starts_with("https://") {
            return Url::parse(argument)
                .map(|url| Self::Url { url, is_referenced: false })
                .map_err(|error| Failed(format!("{argument} is no URL: {error}")));
        }
        if let Some(rest) = argument.strip_prefix("git:") {
            let parts =
                rest.split_once(':').filter(|(revision, path)| !revision.is_empty() && !revision.starts_with('-') && !path.is_empty());
            let Some((revision, path)) = parts else {
                return Err(Failed(format!("{argument} names no file of a revision, as git:main:openapi.json would")));
            };
            return Ok(Self::Git { revision: revision.to_owned(), path: path.to_owned() });
        }
        if let Some((scheme, _)) = argument.split_once("://") {
            return Err(Failed(format!("{argument} cannot be read: {scheme} is neither http nor https")));
        }
        Ok(Self::File(argument.into()))
    }

    /// Returns the file name of the document.
    fn name(&self) -> String {
        let path = match self {
            Self::Input => "",
            Self::File(path) => return path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Url { url, .. } => url.path(),
            Self::Git { path, .. } => path,
        };
        path.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// Returns the source of a referenced file, whose path is relative to this document. Refuses a file outside of this document's folder.
    fn referenced_source(&self, file: &str) -> Result<Self, String> {
        match self {
            Self::Input => Err("standard input has no folder".to_owned()),
            Self::File(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let [folder, file] = [folder.to_owned(), folder.join(file)].map(fs::canonicalize);
                let (folder, file) = (folder.map_err(|error| error.to_string())?, file.map_err(|error| error.to_string())?);
                if file.starts_with(&folder) {
                    Ok(Self::File(file))
                } else {
                    Err("it lies outside of the folder of the document".to_owned())
                }
            }
            Self::Url { url, .. } => {
                let mut beside = url.join(file).map_err(|error| error.to_string())?;
                beside.set_query(url.query());
                let folder = url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                let inside = beside.origin() == url.origin() && beside.path().starts_with(&format!("{folder}/"));
                if inside {
                    Ok(Self::Url { url: beside, is_referenced: true })
                } else {
                    Err("it lies outside of the folder of the document".to_owned())
                }
            }
            Self::Git { revision, path } => {
                let folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
                Ok(Self::Git { revision: revision.clone(), path: format!("{folder}{file}") })
            }
        }
    }

    fn text(&self) -> Result<String, String> {
        let bytes = match self {
            Self::Input => limited(io::stdin().lock())?,
            Self::File(path) => limited(fs::File::open(path).map_err(|error| error.to_string())?)?,
            Self::Url { url, is_referenced } => Handle::current().block_on(fetched(url.clone(), *is_referenced))?,
            Self::Git { revision, path } => {
                let output = Command::new("git").args(["show", &format!("{revision}:{path}")]).output();
                let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
                }
                output.stdout
            }
        };
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(format!("it is longer than {} MiB", MAX_DOCUMENT_BYTES / 1024 / 1024));
        }
        String::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text: {error}"))
    }
}

/// Reads a file up to one byte more than [`MAX_DOCUMENT_BYTES`], so that the caller detects a file that is too large.
fn limited(file: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

async fn fetched(url: Url, is_referenced: bool) -> Result<Vec<u8>, String> {
    let client = client(if is_referenced { Policy::none() } else { Policy::limited(5) })?;
    let mut response = client.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(|error| explained(&error))?;
    if response.status().is_redirection() {
        return Err(format!("the server redirects ({}), which is not followed for a referenced file", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| explained(&error))? {
        if bytes.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(format!("it is longer than {} MiB", MAX_DOCUMENT_BYTES / 1024 / 1024));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
