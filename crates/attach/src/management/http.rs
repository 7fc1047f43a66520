//! As much of HTTP/1.1 as one page needs.

/// Longest head of a request, bytes.
pub(super) const MAX_HEAD: usize = 8 << 10;
/// The end of a head.
pub(super) const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// The only page.
const PAGE: &str = "/metrics";

/// A request for the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Not its head alone.
    pub(super) with_body: bool,
}

/// The status of a response.
pub(super) type Status = &'static str;

pub(super) const OK: Status = "200 OK";
const BAD_REQUEST: Status = "400 Bad Request";
const NOT_FOUND: Status = "404 Not Found";
const METHOD_NOT_ALLOWED: Status = "405 Method Not Allowed";
pub(super) const HEADER_TOO_LARGE: Status = "431 Request Header Fields Too Large";
pub(super) const UNAVAILABLE: Status = "503 Service Unavailable";
const VERSION_NOT_SUPPORTED: Status = "505 HTTP Version Not Supported";

/// Reads the head of a request, of which only the first line matters.
///
/// # Errors
/// The response to send instead.
pub(super) fn parse(head: &[u8]) -> Result<Request, Status> {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| BAD_REQUEST)?;
    let words: Vec<_> = line.strip_suffix('\r').unwrap_or(line).split(' ').collect();
    let [method, target, version] = words[..] else { return Err(BAD_REQUEST) };
    match version {
        "HTTP/1.1" | "HTTP/1.0" => {}
        version if version.starts_with("HTTP/") => return Err(VERSION_NOT_SUPPORTED),
        _ => return Err(BAD_REQUEST),
    }
    let page = target.split('?').next().unwrap_or_default();
    match method {
        "GET" | "HEAD" if page != PAGE => Err(NOT_FOUND),
        "GET" | "HEAD" => Ok(Request { with_body: method == "GET" }),
        _ => Err(METHOD_NOT_ALLOWED),
    }
}

/// A response; without a page it contains its status as text.
pub(super) fn response(status: Status, page: Option<&str>, with_body: bool) -> Vec<u8> {
    let hint = format!("{status}; the page is {PAGE}\n");
    let (page, kind) = match page {
        Some(page) => (page, "text/plain; version=0.0.4; charset=utf-8"),
        None => (&*hint, "text/plain; charset=utf-8"),
    };
    let allow = if status == METHOD_NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
    let length = page.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Cache-Control: no-store\r\n\
         Connection: close\r\n\r\n"
    );
    (head + if with_body { page } else { "" }).into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_page_is_served_and_what_is_wrong_is_said() {
        let asked = |line: &str| parse(format!("{line}\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(asked("GET /metrics HTTP/1.1"), Ok(Request { with_body: true }));
        assert_eq!(asked("GET /metrics?name=x HTTP/1.0"), Ok(Request { with_body: true }));
        assert_eq!(asked("HEAD /metrics HTTP/1.1"), Ok(Request { with_body: false }));
        assert_eq!(asked("GET / HTTP/1.1"), Err(NOT_FOUND));
        assert_eq!(asked("POST /metrics HTTP/1.1"), Err(METHOD_NOT_ALLOWED));
        assert_eq!(asked("GET /metrics HTTP/2"), Err(VERSION_NOT_SUPPORTED));
        for wrong in ["GET /metrics", "", "GET  /metrics HTTP/1.1", "\u{16}\u{3}\u{1}", "GET /metrics FTP/1.1"] {
            assert_eq!(asked(wrong), Err(BAD_REQUEST), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_tells_its_length_and_a_head_comes_without_its_page() {
        let text = |status, page, with_body| String::from_utf8(response(status, page, with_body)).unwrap();
        let full = text(OK, Some("a 1\n"), true);
        assert!(full.starts_with("HTTP/1.1 200 OK\r\n") && full.ends_with("\r\n\r\na 1\n"), "{full}");
        assert!(full.contains("Content-Length: 4\r\n") && full.contains("version=0.0.4"), "{full}");
        let head = text(OK, Some("a 1\n"), false);
        assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length: 4\r\n"), "{head}");
        assert!(text(METHOD_NOT_ALLOWED, None, true).contains("Allow: GET, HEAD\r\n"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in prop::collection::vec(any::<u8>(), 0..200)) {
            let answer = match parse(&head) {
                Ok(_) => response(OK, Some(""), true),
                Err(status) => response(status, None, true),
            };
            prop_assert!(answer.starts_with(b"HTTP/1.1 "));
        }
    }
}
