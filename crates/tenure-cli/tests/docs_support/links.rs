//! Checks that the targets of links exist.

use std::path::Path;

use super::page::Page;

/// The links of a page that lead nowhere.
pub(crate) fn broken(root: &Path, page: &Page) -> Vec<String> {
    let mut broken = Vec::new();
    for (line, text) in page.prose() {
        for target in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').map_or((target, None), |(file, at)| (file, Some(at)));
            let path =
                if file.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(file) };
            let Ok(path) = path.canonicalize() else {
                broken.push(format!("{}:{line}: there is no {file}", page.name));
                continue;
            };
            if let Some(anchor) = anchor
                && !anchors(&Page::read(&root.canonicalize().unwrap(), &path)).contains(&anchor.to_owned())
            {
                broken.push(format!("{}:{line}: {target} names no heading", page.name));
            }
        }
    }
    broken
}

/// The link targets of a line: `[…](target)`. Code is not a link.
fn targets(line: &str) -> Vec<&str> {
    let (mut targets, mut rest) = (Vec::new(), line);
    while let Some(at) = rest.find("](") {
        let in_code = line[..line.len() - rest.len() + at].matches('`').count() % 2 == 1;
        rest = &rest[at + 2..];
        if let Some(end) = rest.find(')').filter(|_| !in_code) {
            targets.push(&rest[..end]);
        }
    }
    targets
}

/// The anchors of the headings of a page.
fn anchors(page: &Page) -> Vec<String> {
    let headings = page.prose().filter(|(_, line)| line.starts_with('#'));
    let slug = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|next| next.is_alphanumeric() || " -_".contains(*next));
        kept.map(|next| if next == ' ' { '-' } else { next }).collect::<String>()
    };
    headings.map(|(_, heading)| slug(heading)).collect()
}
