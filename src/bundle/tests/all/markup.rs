//! Refused documents.

use bundle::Code;

use crate::build::Zip;
use crate::hostile::{Row, all_are_refused, row};

/// A bundle whose page has this body.
pub(crate) fn page(body: impl AsRef<[u8]>) -> Vec<u8> {
    let page = [b"<!doctype html>\n<title>App</title>\n", body.as_ref()].concat();
    Zip::default().file("index.html", page).bytes()
}

pub(crate) fn document(name: &str, content: impl AsRef<[u8]>) -> Vec<u8> {
    Zip::app().file(name, content).bytes()
}

pub(crate) fn svg(content: &str) -> Vec<u8> {
    document("a.svg", format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{content}</svg>"))
}

fn pages(code: Code, bodies: &[&str]) -> Vec<Row> {
    bodies.iter().map(|body| row(format!("page {body}"), code, page(body))).collect()
}

fn pictures(code: Code, contents: &[&str]) -> Vec<Row> {
    contents.iter().map(|content| row(format!("picture {content}"), code, svg(content))).collect()
}

pub(crate) fn rows() -> Vec<Row> {
    [encodings(), limits(), handlers(), addresses(), scripts(), elements(), xml(), hashes()]
        .into_iter()
        .flatten()
        .collect()
}

fn encodings() -> Vec<Row> {
    let mut rows = pages(
        Code::NotUtf8,
        &[
            "<meta charset=latin1>",
            "<meta charset='utf-7'>",
            "<meta charset=utf-16le>",
            "<meta charset='windows-1252'>",
            "<meta http-equiv=content-type content='text/html; charset=iso-8859-1'>",
            "<meta http-equiv='Content-Type' content='text/html;charset = \"shift_jis\"'>",
        ],
    );
    let utf16: Vec<u8> = "<p>Hi".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (what, bytes) in [
        ("Latin-1", page(b"caf\xe9")),
        ("UTF-16", document("a.html", [b"\xff\xfe".as_slice(), &utf16].concat())),
        ("UTF-16 of the other order", document("a.htm", b"\xfe\xff\0<\0p\0>")),
        ("UTF-32", document("a.html", b"\0\0\xfe\xff\0\0\0<")),
        ("a surrogate", page(b"\xed\xa0\x80")),
        ("a cut character", page(b"\xe2\x82")),
        ("SVG in Latin-1", document("a.svg", b"<svg><!-- caf\xe9 --></svg>")),
        ("an XML declaration", document("a.svg", "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><svg/>")),
        ("an XML declaration of a feed", document("a.xml", "<?xml version='1.0' encoding='UTF-16'?><a/>")),
        ("an XML declaration in HTML", document("a.html", "<?xml version='1.0' encoding='latin1'?><p>x")),
    ] {
        rows.push(row(what, Code::NotUtf8, bytes));
    }
    rows
}

fn limits() -> Vec<Row> {
    let attributes = |count: usize| (0..count).map(|n| format!(" a{n}")).collect::<String>();
    let large = |name: &str| document(name, " ".repeat(5 * 1024 * 1024 + 1));
    let nested = (0..6).fold("x".to_owned(), |inner, _| {
        format!("<iframe srcdoc=\"{}\"></iframe>", inner.replace('&', "&amp;").replace('"', "&quot;"))
    });
    let bytes = [
        ("a page above 5 MiB", large("a.html")),
        ("a picture above 5 MiB", large("a.svg")),
        ("513 elements inside each other", page("<div>".repeat(511))),
        ("1,001 attributes", page(format!("<p{}>", attributes(1001)))),
        ("1,001 inline scripts", page("<script type=text/plain></script>".repeat(1001))),
        ("500,001 elements", page("<br>".repeat(500_001))),
        ("elements of XML inside each other", document("a.xml", "<a>".repeat(513))),
        (
            "attributes of a picture",
            svg(&format!("<g{}/>", (0..1001).map(|n| format!(" a{n}=''")).collect::<String>())),
        ),
        ("documents inside each other", page(nested)),
    ];
    bytes.into_iter().map(|(what, bytes)| row(what, Code::HtmlParseLimit, bytes)).collect()
}

fn handlers() -> Vec<Row> {
    let mut rows = pages(
        Code::InlineEventHandler,
        &[
            "<p onclick=x>",
            "<P ONCLICK='x'>",
            "<body onload=x>",
            "<html onfocus=x>",
            "<svg onload=x>",
            "<svg><animate onbegin=x>",
            "<img src=x onerror=x>",
            "<p onanything>",
            "<template><p onclick=x></template>",
            "<template shadowrootmode=open><p onclick=x></template>",
            "<noscript><p onclick=x></noscript>",
            "<iframe srcdoc='<p onclick=x>'></iframe>",
            "<iframe srcdoc='&lt;iframe srcdoc=&quot;&lt;p onclick=x&gt;&quot;&gt;'></iframe>",
            "<math><mi onclick=x>",
            "<table><tr><p onclick=x>",
            "<select><option onclick=x>",
            "<a/onclick=x>",
            "<p title='>' onclick=x>",
            "<p\nonclick\n=\nx>",
            "<!-- --!><p onclick=x>",
            "<textarea></textarea><p onclick=x>",
        ],
    );
    rows.extend(pictures(
        Code::InlineEventHandler,
        &["<g onclick='x'/>", "<a ONLOAD='x'/>", "<image onerror='x'/>"],
    ));
    rows.push(row(
        "the picture's own handler",
        Code::InlineEventHandler,
        document("a.svg", "<svg onload='x'/>"),
    ));
    rows
}

fn addresses() -> Vec<Row> {
    let mut rows = pages(
        Code::JavascriptUrl,
        &[
            "<a href=javascript:x>",
            "<a href='JaVaScRiPt:x'>",
            "<a href='  javascript:x'>",
            "<a href='&#1;javascript:x'>",
            "<a href='java&#9;script:x'>",
            "<a href='java\nscript:x'>",
            "<a href='&#106;avascript:x'>",
            "<a href='javascript&colon;x'>",
            "<a href=vbscript:x>",
            "<a href='data:text/html,x'>",
            "<a href='data:image/svg+xml,x'>",
            "<area href=javascript:x>",
            "<img src=javascript:x>",
            "<form action=javascript:x>",
            "<button formaction=javascript:x>",
            "<input formaction='data:text/html,x'>",
            "<video poster=javascript:x>",
            "<a ping='/a javascript:x'>",
            "<blockquote cite=javascript:x>",
            "<body background=javascript:x>",
            "<html manifest=javascript:x>",
            "<iframe src=javascript:x>",
            "<iframe src='data:text/html,x'>",
            "<svg><a xlink:href=javascript:x>",
            "<svg><a href=javascript:x>",
            "<svg><use href='data:image/svg+xml,x'>",
            "<svg><animate attributeName=href to=javascript:x>",
            "<svg><animate attributeName=xlink:href values='/;javascript:x'>",
            "<svg><set attributeName=href to=javascript:x>",
            "<math><mi xlink:href=javascript:x>",
            "<meta http-equiv=refresh content='0;url=javascript:x'>",
            "<meta http-equiv=refresh content='0;url=data:text/html,x'>",
            "<img srcset='a.png 1x, javascript:x 2x'>",
            "<p style='background:url(javascript:x)'>",
            "<style>p{background:url('javascript:x')}</style>",
            "<template><a href=javascript:x></template>",
            "<noscript><a href=javascript:x></noscript>",
            "<base href=javascript:x>",
            "<link href=javascript:x>",
            "<script src=javascript:x></script>",
            "<object data=javascript:x>",
        ],
    );
    rows.extend(pictures(
        Code::JavascriptUrl,
        &[
            "<a href='javascript:x'/>",
            "<a xlink:href='&#x6A;avascript:x'/>",
            "<a x:href='javascript:x'/>",
            "<animate attributeName='href' to='javascript:x'/>",
        ],
    ));
    rows
}

fn scripts() -> Vec<Row> {
    let mut rows = pages(
        Code::UnsupportedScriptType,
        &[
            "<script type=text/babel>x</script>",
            "<script type=text/typescript>x</script>",
            "<script type=text/vbscript>x</script>",
            "<script type='text/javascript; charset=utf-8'>x</script>",
            "<script type=text/ecmascript-6>x</script>",
            "<script type=speculationrules>{}</script>",
            "<script type=unknown>x</script>",
            "<script language=vbscript>x</script>",
            "<script src=a.js>x</script>",
            "<script src=''>x</script>",
            "<script type=importmap>{</script>",
            "<script type=importmap>[]</script>",
            "<script type=importmap src=a.json></script>",
            "<script type=importmap>{}</script><script type=importmap>{} </script>",
            "<svg><script href=a.js>x</script></svg>",
            "<template><script type=text/babel>x</script></template>",
            "<noscript><script type=text/babel>x</script></noscript>",
        ],
    );
    rows.extend(pages(
        Code::ExternalScript,
        &[
            "<script src=https://cdn.example/a.js></script>",
            "<script src=//cdn.example/a.js></script>",
            "<script src='/\\cdn.example/a.js'></script>",
            "<script src='https:a.js'></script>",
            "<script src='data:text/javascript,x'></script>",
            "<script src=blob:x></script>",
            "<script type=module src=http://cdn.example/a.js></script>",
            "<link rel=modulepreload href=https://cdn.example/a.js>",
            "<link rel='preload MODULEPRELOAD' href=//cdn.example/a.js>",
            "<script type=importmap>{\"imports\":{\"a\":\"https://cdn.example/a.js\"}}</script>",
            "<script type=importmap>{\"imports\":{\"a\":\"a.js\"}}</script>",
            "<script type=importmap>{\"scopes\":{\"/x/\":{\"a\":\"//cdn.example/a.js\"}}}</script>",
            "<svg><script xlink:href=https://cdn.example/a.js></script></svg>",
            "<svg><script href=https://cdn.example/a.js src=a.js></script></svg>",
            "<template><script src=https://cdn.example/a.js></script></template>",
        ],
    ));
    rows
}

fn elements() -> Vec<Row> {
    pages(
        Code::UnsupportedElement,
        &[
            "<object data=a.swf></object>",
            "<embed src=a.swf>",
            "<applet code=a></applet>",
            "<portal src=/></portal>",
            "<fencedframe></fencedframe>",
            "<iframe srcdoc='<p>x'></iframe>",
            "<base href=https://other.example/>",
            "<base href=//other.example/>",
            "<base href='../'>",
            "<base href=''>",
            "<meta http-equiv=refresh content='0;url=https://other.example/'>",
            "<meta http-equiv=refresh content='0;https://other.example/'>",
            "<meta http-equiv=set-cookie content='a=b'>",
            "<meta http-equiv=default-style content=x>",
            "<meta http-equiv=content-security-policy-report-only content=x>",
            "<template><object></object></template>",
        ],
    )
    .into_iter()
    .chain([row(
        "a frameset",
        Code::UnsupportedElement,
        Zip::default().file("index.html", "<!doctype html><frameset><frame src=a.html></frameset>").bytes(),
    )])
    .collect()
}

fn xml() -> Vec<Row> {
    let mut rows = pictures(
        Code::SvgScript,
        &[
            "<script>x</script>",
            "<script href='a.js'/>",
            "<SCRIPT>x</SCRIPT>",
            "<s:script xmlns:s='http://www.w3.org/2000/svg'>x</s:script>",
            "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'><script>x</script></body></foreignObject>",
            "<g></wrong><script>x</script>",
            "<g></wrong><s:script>x</s:script>",
        ],
    );
    let entity = "<!DOCTYPE svg [<!ENTITY a \"b\">]><svg>&a;</svg>";
    let bomb = "<!DOCTYPE svg [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><svg>&b;</svg>";
    for (what, name, content) in [
        ("an entity", "a.svg", entity),
        ("an entity in lower case", "a.svg", "<!doctype svg [<!entity a 'b'>]><svg/>"),
        ("a billion laughs", "a.svg", bomb),
        ("an external entity", "a.xml", "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>"),
        ("a style sheet instruction", "a.xml", "<?xml-stylesheet href='a.xsl'?><a/>"),
        ("a style sheet instruction in a picture", "a.svg", "<?xml-stylesheet href='a.css'?><svg/>"),
        (
            "a script in XHTML",
            "a.xhtml",
            "<html xmlns='http://www.w3.org/1999/xhtml'><script>x</script></html>",
        ),
        ("a script in XML", "a.xml", "<a xmlns:h='http://www.w3.org/1999/xhtml'><h:script>x</h:script></a>"),
        ("a script in a style sheet", "a.xsl", "<xsl:stylesheet><script>x</script></xsl:stylesheet>"),
        ("a script in broken XML", "a.xml", "<a><b></a><script>x</script>"),
        ("a script in a feed", "a.rss", "<rss><script/></rss>"),
        ("HTML as a picture", "a.svg", "<!doctype html><p><script>x</script>"),
    ] {
        rows.push(row(what, Code::SvgScript, document(name, content)));
    }
    rows
}

fn hashes() -> Vec<Row> {
    let scripts: String = (0..101).map(|number| format!("<script>{number}</script>")).collect();
    vec![row("101 inline scripts", Code::CspTooLarge, page(scripts))]
}

#[test]
fn documents_with_forbidden_content_are_rejected() {
    all_are_refused(&rows());
}
