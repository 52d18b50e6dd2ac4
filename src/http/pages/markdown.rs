//! Renders Markdown as HTML. Headings get ids, so that links can point to them. A table or code block may be wider than the screen of a
//! phone, so the reader can scroll it sideways without scrolling the page.
//!
//! An example may be written in several languages, one code block after the other. The page shows these code blocks as tabs.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html::push_html};

/// The languages of examples: the name of the language in the Markdown code block, and the text of the tab.
const LANGUAGES: [(&str, &str); 4] = [("sh", "curl"), ("python", "Python"), ("typescript", "TypeScript"), ("rust", "Rust")];

/// A part of a Markdown text: prose, or an example with tabs.
enum TextPart<'a> {
    Text(Vec<Event<'a>>),
    /// The same example in one or several languages: pairs of the language and the code.
    Example(Vec<(String, String)>),
}

/// Renders a Markdown text as HTML.
pub fn rendered(markdown: &str) -> Markup {
    let parts = parts(Parser::new_ext(markdown, Options::ENABLE_TABLES));
    let mut examples = 0;
    let mut shown = |part| match part {
        TextPart::Text(events) => {
            let mut text = String::new();
            push_html(&mut text, events.into_iter());
            PreEscaped(text)
        }
        TextPart::Example(versions) => {
            examples += 1;
            example(examples, &versions)
        }
    };
    html! { @for part in parts { (shown(part)) } }
}

fn parts<'a>(mut events: Parser<'a>) -> Vec<TextPart<'a>> {
    let mut parts = vec![];
    while let Some(event) = events.next() {
        if let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) = event {
            let code =
                events.by_ref().map_while(|event| if let Event::Text(text) = event { Some(text.into_string()) } else { None }).collect();
            match parts.last_mut() {
                Some(TextPart::Example(versions)) => versions.push((language.into_string(), code)),
                _ => parts.push(TextPart::Example(vec![(language.into_string(), code)])),
            }
            continue;
        }
        if !matches!(parts.last(), Some(TextPart::Text(_))) {
            parts.push(TextPart::Text(vec![]));
        }
        let Some(TextPart::Text(text)) = parts.last_mut() else { continue };
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let inner: Vec<_> = events.by_ref().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_)))).collect();
                let id = Some(anchor(&inner).into());
                text.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                text.extend(inner);
                text.push(Event::End(TagEnd::Heading(level)));
            }
            // A table may be wider than the screen of a phone, so it is put into a box that scrolls sideways. The box can have the focus,
            // so that the reader can scroll it with the keyboard.
            Event::Start(Tag::Table(_)) => {
                text.extend([Event::Html("<div class=\"wide\" role=\"region\" aria-label=\"Table\" tabindex=\"0\">".into()), event]);
            }
            Event::End(TagEnd::Table) => text.extend([event, Event::Html("</div>".into())]),
            Event::Start(Tag::CodeBlock(_)) => text.push(Event::Html("<pre tabindex=\"0\"><code>".into())),
            // HTML in a Markdown text is shown as text, and does not become a part of the page.
            Event::Html(markup) | Event::InlineHtml(markup) => text.push(Event::Text(markup)),
            _ => text.push(event),
        }
    }
    parts
}

/// Returns the id of a heading, for links to it: its words in lower case, joined by hyphens.
fn anchor(heading: &[Event<'_>]) -> String {
    let text: String =
        heading.iter().filter_map(|event| if let Event::Text(text) | Event::Code(text) = event { Some(&**text) } else { None }).collect();
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect::<Vec<_>>()
        .join("-")
}

/// Renders an example with a tab for each language.
fn example(number: usize, versions: &[(String, String)]) -> Markup {
    html! {
        div.example {
            fieldset {
                legend.unseen { "Language of example " (number) }
                @for (language, name) in LANGUAGES.iter().filter(|(language, _)| versions.iter().any(|(of, _)| of == language)) {
                    label { input type="radio" name={ "example-" (number) } value=(language) checked[*language == versions[0].0]; (name) }
                }
            }
            @for (language, code) in versions {
                pre data-language=(language) tabindex="0" { code { (code) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_an_example_stays_text() {
        let page = rendered("# T\n\n```sh\necho '<b>&'\n```\n\n```rust\nx\n```\n\n## A `b` c\n").into_string();
        assert!(page.contains("echo '&lt;b&gt;&amp;'") && page.contains("<h2 id=\"a-b-c\">"), "{page}");
        assert_eq!(page.matches("type=\"radio\"").count(), 2);
        assert_eq!(page.matches("checked").count(), 1);
    }
}
