//! The guides: texts on topics that concern more than one operation, in the Markdown files of `docs/guides`.
//! `tests/guides/guide_examples.py` runs the examples in the guides.

/// A guide in Markdown, whose first line is the title.
#[derive(Debug)]
pub struct Guide {
    name: &'static str,
    pub markdown: &'static str,
}

macro_rules! guides {
    ($($name:literal),* $(,)?) => {
        [$(Guide { name: $name, markdown: include_str!(concat!("../../../docs/guides/", $name, ".md")) }),*]
    };
}

/// Every guide, in the order of the navigation.
pub static GUIDES: [Guide; 8] =
    guides!["authentication", "paging", "errors", "idempotency", "expand", "rate-limits", "webhooks", "moving-from-a-to-b",];

impl Guide {
    pub fn path(&self) -> String {
        format!("/docs/guides/{}", self.name)
    }

    pub fn title(&self) -> &'static str {
        self.markdown.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::pages::markdown::rendered;

    #[test]
    fn every_guide_shows_its_examples_in_every_language() {
        for guide in &GUIDES {
            let page = rendered(guide.markdown).into_string();
            assert!(page.starts_with("<h1 ") && page.contains(&format!(">{}</h1>", guide.title())), "{}", guide.name);
            for language in ["sh", "python", "typescript", "rust"] {
                assert_eq!(page.matches(&format!("<pre data-language=\"{language}\"")).count(), 1, "{}: {language}", guide.name);
            }
            assert!(!guide.markdown.contains("```\n```"), "{}: a code block needs a language", guide.name);
        }
    }

    #[test]
    fn links_between_pages_lead_somewhere() {
        let known = ["/docs/changes", "/settings", "/settings/docs", "/openapi-events.json"];
        for guide in &GUIDES {
            for (_, rest) in guide.markdown.match_indices("](/").map(|(at, _)| guide.markdown.split_at(at + 2)) {
                let target = rest.split(')').next().unwrap();
                assert!(known.contains(&target) || GUIDES.iter().any(|guide| guide.path() == target), "{}: {target}", guide.name);
            }
        }
    }
}
