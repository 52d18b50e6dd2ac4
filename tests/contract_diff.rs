//! Tests of the command `counterpart contract diff`, and of the committed comparisons of OpenAPI documents. Also tests the compatibility
//! promise: no committed document breaks clients of its released version, unless a note says why.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use openapi_diff::{Document, Notes, Report, diff};
use serde_json::Value;

fn openapi() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document(path: &Path) -> Document {
    Document::read(&read(path)).unwrap_or_else(|error| panic!("{} {error}", path.display()))
}

fn ran(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_counterpart"));
    command.current_dir(openapi()).args(["contract", "diff"]).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const A_TO_B: [&str; 4] = ["rev-a.json", "rev-b.json", "--notes", "a-to-b.notes.json"];

/// The committed comparisons. Each has the two documents that are compared, the old one first, and the name of the comparison's files
/// without their extensions.
const COMMITTED: [[&str; 3]; 3] = [
    ["rev-a.json", "rev-b.json", "a-to-b"],
    ["rev-b.json", "rev-a.json", "b-to-a"],
    ["events-rev-a.json", "events-rev-b.json", "events-a-to-b"],
];

/// The comparisons that are committed as JSON besides Markdown. The documentation pages about changes are rendered from the JSON.
const RENDERED: [&str; 2] = ["a-to-b", "events-a-to-b"];

fn notes(name: &str) -> Notes {
    serde_json::from_str(&read(&openapi().join(format!("{name}.notes.json")))).unwrap()
}

#[test]
fn every_breaking_change_between_the_revisions_has_a_note_and_every_note_its_changes() {
    for [old, new, name] in COMMITTED {
        let mut report = diff(&document(&openapi().join(old)), &document(&openapi().join(new)));
        let gaps = report.annotate(&notes(name));
        assert!(gaps.is_none(), "openapi/{name}.notes.json:\n{gaps}");
    }
}

#[test]
fn the_committed_comparisons_are_what_the_binary_prints() {
    let formats = COMMITTED.into_iter().flat_map(|names| ["md", "json"].map(|format| (names, format)));
    for ([old, new, name], format) in formats.filter(|([.., name], format)| *format == "md" || RENDERED.contains(name)) {
        let output = ran(&[old, new, "--notes", &format!("{name}.notes.json"), "--format", format], "");
        let stale = format!(
            "stale: run `cargo run -- contract diff openapi/{old} openapi/{new} --notes openapi/{name}.notes.json \
             --format {format} --output openapi/{name}.{format}` and commit"
        );
        assert!(printed(&output) == read(&openapi().join(format!("{name}.{format}"))), "{stale}");
    }
}

/// `features.md` has a table of the differences that no OpenAPI document shows. Its rows must equal the entries of
/// `unshown` in `openapi/a-to-b.notes.json`.
#[test]
fn differences_that_no_document_shows_are_in_the_notes_and_in_features_md() {
    let features = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("features.md"));
    let (_, section) = features.split_once("\n## Differences in behaviour that a document can't show\n").unwrap();
    let shown: Vec<_> = section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `")).collect();
    let got: Vec<_> = notes("a-to-b").unshown.iter().map(|row| format!("| `{}` | {} | {} |", row.key, row.old, row.new)).collect();
    assert_eq!(shown, got, "features.md and openapi/a-to-b.notes.json");
    assert!(!got.is_empty());
}

#[test]
fn no_committed_document_breaks_a_released_one_without_a_note() {
    let released = openapi().join("released");
    let mut notes: BTreeMap<String, Notes> = serde_json::from_str(&read(&released.join("notes.json"))).unwrap();
    let mut faults = Vec::new();
    let mut compared = 0;
    for entry in fs::read_dir(&released).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "notes.json" {
            continue;
        }
        let now = openapi().join(&name);
        if !now.exists() {
            faults.push(format!("{name} was released and is gone"));
            continue;
        }
        compared += 1;
        let mut report = diff(&document(&released.join(&name)), &document(&now));
        let gaps = report.annotate(&notes.remove(&name).unwrap_or_default());
        if !gaps.is_none() {
            faults.push(format!("{name}:\n{gaps}"));
        }
    }
    faults.extend(notes.into_keys().map(|name| format!("there are notes on {name}, which was not released")));
    assert!(compared > 0, "nothing is released");
    assert!(faults.is_empty(), "openapi/released/notes.json does not fit:\n{}", faults.join("\n"));
}

#[test]
fn the_json_report_matches_its_schema() {
    let schema: Value = serde_json::from_str(&read(&openapi().join("contract-diff.schema.json"))).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let broken =
        r#"{"openapi":"3.1.0","info":{},"paths":{"/a":{"get":{"responses":{"200":{"$ref":"b.yaml"}}}}},"webhooks":{"w":{"post":{}}}}"#;
    for (arguments, input) in [(&A_TO_B[..], ""), (&["rev-b.json", "rev-a.json"], ""), (&["-", "settings.json"], broken)] {
        let output = ran(&[arguments, &["--format", "json"]].concat(), input);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_str(&printed(&output)).unwrap();
        let faults: Vec<_> = validator.iter_errors(&report).map(|fault| format!("{fault} at {}", fault.instance_path)).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        // The printed JSON can be parsed as a [`Report`].
        let read: Report = serde_json::from_value(report).unwrap();
        assert!(!read.changes.is_empty());
    }
}

#[test]
fn exit_codes_reflect_the_changes() {
    let base = r#"{"openapi":"3.0.3","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"responses":{}}}}}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), base).unwrap();
    let file = file.path().to_str().unwrap();
    let code = |new: &str, more: &[&str]| ran(&[&[file, "-"], more].concat(), new).status.code();
    assert_eq!(code(base, &[]), Some(0));
    assert_eq!(code(&base.replace("/a", "/b"), &[]), Some(1));
    assert_eq!(code(&base.replace(r#""responses""#, r#""x-new":1,"responses""#), &[]), Some(0));
    assert_eq!(code(&base.replace(r#""responses""#, r#""x-new":1,"responses""#), &["--fail-on", "unknown"]), Some(1));
    assert_eq!(code(&base.replace(r#""version":"1""#, r#""version":"2""#), &["--fail-on", "unknown"]), Some(0));
    assert_eq!(code(&base.replace(r#""version":"1""#, r#""version":"2""#), &["--fail-on", "compatible"]), Some(1));
}

#[test]
fn notes_that_do_not_match_cause_warnings() {
    let warned = |arguments: &[&str]| String::from_utf8(ran(arguments, "").stderr).unwrap();
    assert_eq!(warned(&A_TO_B), "");
    let said = warned(&["rev-b.json", "rev-a.json", "--notes", "a-to-b.notes.json"]);
    assert!(said.contains("warning: no note on ") && said.contains(", which no change has"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("warning: ")), "{said}");
}

#[test]
fn unreadable_inputs_are_named_with_the_reason() {
    for (arguments, input, said) in [
        (&["rev-a.json", "nowhere.json"][..], "", "nowhere.json cannot be read: No such file"),
        (&["rev-a.json", "-"], "{\n  \"openapi\": 3.0,,\n}", "standard input is not JSON: "),
        (&["rev-a.json", "-"], "{\n  \"openapi\": 3.0,,\n}", "line 2 column"),
        (&["-", "rev-a.json"], "a: [\nb", "standard input is not YAML: "),
        (&["-", "rev-a.json"], "[]", "standard input is not an OpenAPI document: it is not an object"),
        (&["rev-a.json", "rev-a.routes"], "", "rev-a.routes is not"),
        (&["-", "-"], "", "only one of the documents"),
        (&["rev-a.json"], "", "<NEW>"),
        (&["rev-a.json", "rev-b.json", "--notes", "rev-a.json"], "", "rev-a.json holds no notes"),
        (&["rev-a.json", "rev-b.json", "--approved", "rev-a.json"], "", "rev-a.json holds no approvals such as {"),
        (&["rev-a.json", "rev-b.json", "--severity", "rev-a.json"], "", "rev-a.json holds no severities"),
        (&["rev-a.json", "rev-b.json", "--match-path", "("], "", "--match-path"),
        (&["rev-a.json", "rev-b.json", "--match-path", "^/nowhere"], "", "matches no path of the documents, such as /"),
        (&["rev-a.json", "ftp://example.com/openapi.json"], "", "ftp is neither http nor https"),
        (&["rev-a.json", "git:nowhere"], "", "git:main:openapi.json"),
        (&["rev-a.json", "git:no-such-revision:openapi/rev-a.json"], "", "cannot be read"),
        (&["rev-a.json", "http://127.0.0.1:1/openapi.json"], "", "cannot be read"),
        (&["rev-a.json", "rev-b.json", "--output", "nowhere/at/all"], "", "nowhere/at/all cannot be written"),
    ] {
        let output = ran(arguments, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{said}: {error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn every_output_format_can_be_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for (format, begins) in [
        ("text", "counterpart, revision A 1.0.0 -> "),
        ("md", "# counterpart"),
        ("json", "{"),
        ("html", "<!DOCTYPE html>"),
        ("sarif", "{"),
        ("junit", "<?xml"),
        ("github", "::error file=rev-b.json,"),
    ] {
        let file = folder.path().join(format);
        let output = ran(&["rev-a.json", "rev-b.json", "--format", format, "--output", file.to_str().unwrap()], "");
        assert!(output.stdout.is_empty() && output.status.code() == Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let (written, said) = (read(&file), printed(&ran(&["rev-a.json", "rev-b.json", "--format", format], "")));
        assert!(written.starts_with(begins), "{format}");
        assert_eq!(written, said, "{format}");
    }
}

/// A git repository with a committed OpenAPI document, and an uncommitted change that removes an operation. The scripts that the tests run
/// in it find the `counterpart` binary on the path.
struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.run("git init -q -b main && git config user.email a@example.com && git config user.name a");
        repository.write("openapi.json", &two_operations("/b"));
        repository.run("mkdir contract");
        repository.write("contract/approved.json", r#"{"approvals":[]}"#);
        repository.run("git add -A && git commit -qm first && git update-ref refs/remotes/origin/main HEAD");
        repository.write("openapi.json", &two_operations("/c"));
        repository
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn try_run(&self, script: &str) -> Output {
        let binaries = Path::new(env!("CARGO_BIN_EXE_counterpart")).parent().unwrap();
        let path = std::env::join_paths([binaries.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())))
            .unwrap();
        Command::new("bash").args(["-ec", script]).current_dir(&self.folder).env("PATH", path).env("BASE", "origin/main").output().unwrap()
    }

    fn run(&self, script: &str) -> String {
        let output = self.try_run(script);
        assert!(output.status.success(), "{script}: {}{}", printed(&output), String::from_utf8_lossy(&output.stderr));
        printed(&output)
    }

    /// Approves the breaking change: writes its fingerprint to `contract/approved.json`.
    fn approve(&self) {
        let report = printed(&self.try_run("counterpart contract diff git:HEAD:openapi.json openapi.json --format json"));
        let report: Report = serde_json::from_str(&report).unwrap();
        let change = report.failing(openapi_diff::Class::Breaking).next().unwrap();
        let approvals =
            format!(r#"{{"approvals":[{{"fingerprint":"{}","reason":"Nothing calls it.","expires":"2999-12-31"}}]}}"#, change.fingerprint);
        self.write("contract/approved.json", &approvals);
    }
}

fn two_operations(path: &str) -> String {
    format!(
        r#"{{"openapi":"3.0.3","info":{{"title":"T","version":"1"}},"paths":{{"/a":{{"get":{{"responses":{{}}}}}},"{path}":{{"get":{{"responses":{{}}}}}}}}}}"#
    )
}

fn example(name: &str) -> String {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contract-gate").join(name))
}

#[test]
fn the_workflow_of_the_examples_fails_until_the_change_is_approved() {
    let workflow = example("github-action.yml");
    let (_, step) = workflow.rsplit_once("run: |\n").unwrap();
    let repository = Repository::new();
    let output = repository.try_run(step);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed(&output).starts_with("::error file=openapi.json,title=operation-removed ("), "{}", printed(&output));
    repository.approve();
    assert!(repository.run(step).starts_with("::notice file=openapi.json"));
    // Once the change is merged, its approval matches no change. The workflow fails until the approval is removed.
    repository.run("git add -A && git commit -qm second && git update-ref refs/remotes/origin/main HEAD");
    let output = repository.try_run(step);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("no change has this fingerprint"), "{error}");
}

#[test]
fn the_hook_of_the_examples_stops_a_commit_until_the_change_is_approved() {
    let repository = Repository::new();
    fs::write(repository.folder.path().join(".git/hooks/pre-commit"), example("pre-commit")).unwrap();
    repository.run("chmod +x .git/hooks/pre-commit && git add -A");
    let output = repository.try_run("git commit -qm second");
    assert!(!output.status.success() && format!("{output:?}").contains("operation-removed"), "{output:?}");
    repository.approve();
    repository.run("git add -A && git commit -qm second");
}

#[test]
fn documents_are_read_from_git_revisions_and_urls_with_referenced_files() {
    let repository = Repository::new();
    let document = r#"{"openapi":"3.0.3","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"responses":{"200":{"description":"","content":{"application/json":{"schema":{"$ref":"schemas/pet.json"}}}}}}}}}"#;
    repository.run("mkdir -p api/schemas");
    repository.write("api/openapi.json", document);
    repository.write("api/schemas/pet.json", r#"{"type":"string"}"#);
    repository.run("git add -A && git commit -qm pets");
    repository.write("api/schemas/pet.json", r#"{"type":"integer"}"#);
    let typed = |old: &str, new: &str| {
        let output = repository.try_run(&format!("counterpart contract diff {old} {new}"));
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        printed(&output)
    };
    assert!(typed("git:HEAD:api/openapi.json", "api/openapi.json").contains("is integer, was string"));
    // Starts an HTTP server that responds to each request with a file of the repository.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let root = repository.folder.path().to_owned();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let length = std::io::Read::read(&mut stream, &mut request).unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let body = fs::read_to_string(root.join(path)).unwrap_or_default();
            _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        }
    });
    let url = format!("http://{address}/api/openapi.json");
    assert!(typed("git:HEAD:api/openapi.json", &url).contains("is integer, was string"));
    // A relative server URL in a file is equal to the absolute server URL in a downloaded document, if the absolute URL is on the host of
    // the download.
    let with_server = |url: &str| document.replacen('{', &format!("{{\"servers\": [{{\"url\": \"{url}\"}}], "), 1);
    repository.write("api/relative.json", &with_server("/v1"));
    for (server, same) in [(format!("http://{address}/v1"), true), (format!("http://{address}0/v1"), false)] {
        repository.write("api/served.json", &with_server(&server));
        let report = printed(&repository.try_run(&format!("counterpart contract diff api/relative.json http://{address}/api/served.json")));
        assert_eq!(report.contains("server"), !same, "{report}");
    }
    // A reference to a missing file, or to a file outside of the document's folder, is reported as an unknown change.
    for reference in ["schemas/none.json", "../contract/approved.json"] {
        repository.write("api/openapi.json", &document.replace("schemas/pet.json", reference));
        let output = repository.try_run("counterpart contract diff api/openapi.json api/openapi.json --fail-on unknown");
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        assert!(printed(&output).contains(&format!("{reference} is not followed")), "{}", printed(&output));
    }
}
