//! The page at `/`: files that are part of the program, with headers under which nothing else can run in them.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Scripts, styles and requests of this server only, nothing inline, no frames around it, and no way from text to
/// markup: the page shows what models and their clients write.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! file {
    ($path:literal, $name:literal, $kind:expr) => {
        File { path: $path, kind: $kind, text: include_str!(concat!("../../server/page/", $name)) }
    };
}

/// Every file, and where it is served. The page names them and the API relative to itself, so that it also works below
/// a path of another server.
const FILES: [File; 16] = [
    file!("/", "index.html", HTML),
    file!("/page/style.css", "style.css", CSS),
    file!("/page/icon.svg", "icon.svg", SVG),
    file!("/page/align.js", "align.js", SCRIPT),
    file!("/page/answer.js", "answer.js", SCRIPT),
    file!("/page/api.js", "api.js", SCRIPT),
    file!("/page/app.js", "app.js", SCRIPT),
    file!("/page/chat.js", "chat.js", SCRIPT),
    file!("/page/compatibility.js", "compatibility.js", SCRIPT),
    file!("/page/dom.js", "dom.js", SCRIPT),
    file!("/page/events.js", "events.js", SCRIPT),
    file!("/page/live.js", "live.js", SCRIPT),
    file!("/page/plots.js", "plots.js", SCRIPT),
    file!("/page/settings.js", "settings.js", SCRIPT),
    file!("/page/sources.js", "sources.js", SCRIPT),
    file!("/page/token.js", "token.js", SCRIPT),
];

#[derive(Clone, Copy)]
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// The routes of the page, to be merged with those of the API. They need no key: there is nothing secret in them.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, file| {
        let tag = file.tag();
        router.route(file.path, get(move |headers: HeaderMap| std::future::ready(file.answer(&tag, &headers))))
    })
}

impl File {
    /// A name for the content. The hash is the same in every run of one executable, which is all that is asked of it.
    fn tag(&self) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish())).unwrap_or(HeaderValue::from_static("\"\""))
    }

    fn answer(&self, tag: &HeaderValue, asked: &HeaderMap) -> Response {
        let headers: [(HeaderName, HeaderValue); 6] = [
            (header::ETAG, tag.clone()),
            // Kept, but asked about each time: after an update no old script meets a new page.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        if has(asked, tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(self.kind))];
        (headers, kind, Bytes::from_static(self.text.as_bytes())).into_response()
    }
}

/// Whether the client says that it has this content already. A proxy that compresses marks tags as weak.
fn has(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let all = asked.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(','))
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == "*" || one.as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn ends_with(kind: &'static str) -> impl Iterator<Item = File> {
        FILES.into_iter().filter(move |file| file.kind == kind)
    }

    /// The words in quotation marks that come after each of these.
    fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
        let rests = text.match_indices(before).map(|(at, _)| &text[at + before.len()..]);
        rests.filter_map(|rest| rest.strip_prefix('"')?.split('"').next()).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("server").join("page");
        let present: BTreeSet<String> =
            folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let served: BTreeSet<String> =
            FILES.iter().map(|file| file.path.strip_prefix("/page/").unwrap_or("index.html").to_owned()).collect();
        assert_eq!(present, served);
        for file in FILES {
            let ending = file.path.rsplit_once('.').map_or("html", |(_, ending)| ending);
            let kind = match ending {
                "html" => HTML,
                "css" => CSS,
                "svg" => SVG,
                _ => SCRIPT,
            };
            assert_eq!(file.kind, kind, "{}", file.path);
        }
    }

    #[test]
    fn nothing_refers_to_another_host() {
        const NAMESPACE: &str = "\"http://www.w3.org/2000/svg\"";
        for file in FILES {
            let text = file.text.replace(NAMESPACE, "");
            assert!(!text.contains("://"), "{} names a host", file.path);
            for relative in ["\"//", "'//", "(//", "=//", "`//"] {
                assert!(!text.contains(relative), "{} names a host after {relative:?}", file.path);
            }
        }
        let known = |path: &str| FILES.iter().any(|file| file.path == format!("/page/{path}"));
        let html = FILES[0].text;
        let mut named: Vec<&str> = [quoted(html, "src="), quoted(html, "href=")].concat();
        named.retain(|name| !name.starts_with('#'));
        assert_eq!(named.len(), 3);
        assert!(named.iter().all(|name| name.strip_prefix("page/").is_some_and(known)), "{named:?}");
        for file in ends_with(SCRIPT) {
            for name in [quoted(file.text, "from "), quoted(file.text, "import ")].concat() {
                assert!(name.strip_prefix("./").is_some_and(known), "{} imports {name}", file.path);
            }
        }
        assert!(ends_with(CSS).all(|file| !file.text.contains("url(") && !file.text.contains("@import")));
    }

    /// The policy would stop these; the page does not try.
    #[test]
    fn nothing_is_inline_and_no_text_becomes_markup() {
        for file in ends_with(HTML) {
            let attributes = file.text.split('<').filter_map(|tag| tag.split('>').next());
            let words = attributes.flat_map(|tag| tag.split_whitespace().skip(1));
            for word in words {
                assert!(!word.starts_with("on") && !word.starts_with("style="), "{word} is inline");
            }
            for script in file.text.split("<script").skip(1) {
                assert!(script.split_once('>').is_some_and(|(_, body)| body.starts_with("</script>")), "{script}");
            }
            assert!(!file.text.contains("<style"));
        }
        for file in ends_with(SCRIPT) {
            for way in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"]
            {
                assert!(!file.text.contains(way), "{} uses {way}", file.path);
            }
        }
    }

    #[test]
    fn answers_have_their_headers() {
        for file in FILES {
            let tag = file.tag();
            let answer = file.answer(&tag, &HeaderMap::new());
            assert_eq!(answer.status(), StatusCode::OK);
            let header = |name: HeaderName| answer.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(header(header::CONTENT_TYPE), file.kind);
            assert!(header(header::CONTENT_SECURITY_POLICY).starts_with("default-src 'self';"));
            assert_eq!(header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
            assert_eq!(header(header::CACHE_CONTROL), "no-cache");
            assert_eq!(header(header::ETAG), tag.to_str().unwrap());
            assert_eq!(tag.len(), 18);
        }
        let tags: BTreeSet<String> = FILES.iter().map(|file| file.tag().to_str().unwrap().to_owned()).collect();
        assert_eq!(tags.len(), FILES.len());
    }

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        let (file, tag) = (FILES[0], FILES[0].tag());
        let status = |asked: &str| {
            let asked = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_str(asked).unwrap())]);
            file.answer(&tag, &asked).status()
        };
        let same = tag.to_str().unwrap();
        for asked in [same, "*", &format!("W/{same}"), &format!("\"other\", {same}")] {
            assert_eq!(status(asked), StatusCode::NOT_MODIFIED, "{asked}");
        }
        for asked in ["\"other\"", "", same.trim_matches('"')] {
            assert_eq!(status(asked), StatusCode::OK, "{asked}");
        }
    }
}
