//! Extracts the shell commands from a Markdown document.

/// Returns the `sh` code blocks of the section whose title begins with `section`, in their order.
pub fn blocks(text: &str, section: &str) -> Vec<String> {
    let body = text.split("\n## ").find(|part| part.starts_with(section)).expect("the section");
    body.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}
