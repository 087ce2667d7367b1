//! Scripts in pages, by whether a browser executes them.

/// Scripts that run, allowed by their page's policy.
pub(super) fn running() -> Vec<(&'static str, Vec<u8>)> {
    let large = format!("<script>/*{}*/ran.push(1)</script>", "x".repeat(1 << 20));
    let texts: [(&str, &str); 19] = [
        ("LF", "<script>\nran.push(1)\n</script>"),
        ("CRLF", "<script>\r\nran.push(1)\r\n</script>"),
        ("CR", "<script>\rran.push(1)\r</script>"),
        ("NUL", "<script>ran.push('a\0b')</script>"),
        ("a BOM", "<script>\u{feff}ran.push(1)</script>"),
        ("double-escaped", "<script><!--<script></script>-->\nran.push(1)</script>"),
        ("an entity of SVG", "<svg><script>if (1 &lt; 2) ran.push(1)</script></svg>"),
        ("CDATA of SVG", "<svg><script><![CDATA[if (1 < 2) ran.push(1)]]></script></svg>"),
        ("CRLF in CDATA of SVG", "<svg><script><![CDATA[\r\nran.push(1)\r\n]]></script></svg>"),
        ("a character after U+FFFF", "<script>ran.push('\u{1f600}')</script>"),
        ("a table", "<table><script>ran.push(1)</script></table>"),
        ("a cloned template", "<template class=clone><script>ran.push(1)</script></template>"),
        ("two scripts", "<script>var a = 1</script><script>ran.push(a)</script>"),
        ("a type with blanks", "<script type=' text/JavaScript '>ran.push(1)</script>"),
        ("an empty type", "<script type=''>ran.push(1)</script>"),
        ("an old type", "<script type=text/javascript1.5>ran.push(1)</script>"),
        ("a language", "<script language=JavaScript>ran.push(1)</script>"),
        ("a module", "<script type=module>ran.push(1)</script>"),
        (
            "an import map",
            "<script type=importmap>{\"imports\": {\"m\": \"/module.js\"}}</script><script type=module>import 'm'</script>",
        ),
    ];
    let mut all: Vec<(&str, Vec<u8>)> = texts.into_iter().map(|(label, text)| (label, text.into())).collect();
    for kind in [
        "application/ecmascript",
        "application/javascript",
        "application/x-ecmascript",
        "application/x-javascript",
        "text/ecmascript",
        "text/javascript",
        "text/javascript1.0",
        "text/jscript",
        "text/livescript",
        "text/x-ecmascript",
        "text/x-javascript",
    ] {
        all.push((kind, format!("<script type={kind}>ran.push(1)</script>").into_bytes()));
    }
    all.push(("1 MiB", large.into_bytes()));
    all
}

/// Accepted pages whose scripts do not run.
pub(super) const RESTING: [(&str, &str); 13] = [
    ("a textarea", "<textarea><script>ran.push(1)</script></textarea>"),
    ("a title", "<title><script>ran.push(1)</script></title>"),
    ("a comment", "<!-- <script>ran.push(1)</script> -->"),
    ("noscript", "<noscript><script>ran.push(1)</script></noscript>"),
    ("a template", "<template><script>ran.push(1)</script></template>"),
    ("not closed", "<script>ran.push(1)"),
    ("MathML", "<math><script>ran.push(1)</script></math>"),
    ("JSON", "<script type=application/json>ran.push(1)</script>"),
    ("JSON-LD", "<script type=application/ld+json>ran.push(1)</script>"),
    ("plain text", "<script type=text/plain>ran.push(1)</script>"),
    ("a text template", "<script type=text/template>ran.push(1)</script>"),
    ("an old template", "<script type=text/x-template>ran.push(1)</script>"),
    ("Handlebars", "<script type=text/x-handlebars-template>ran.push(1)</script>"),
];

/// Rejected scripts that do not run even if the policy has their hash.
pub(super) const UNSUPPORTED: [(&str, &str); 10] = [
    ("a type with a parameter", "<script type='text/javascript; charset=utf-8'>ran.push(1)</script>"),
    ("Babel", "<script type=text/babel>ran.push(1)</script>"),
    ("TypeScript", "<script type=text/typescript>ran.push(1)</script>"),
    ("VBScript", "<script type=text/vbscript>ran.push(1)</script>"),
    ("ECMAScript 6", "<script type=text/ecmascript-6>ran.push(1)</script>"),
    ("an unknown type", "<script type=x>ran.push(1)</script>"),
    ("a blank type", "<script type=' '>ran.push(1)</script>"),
    ("an unknown language", "<script language=vbscript>ran.push(1)</script>"),
    ("an address and a text", "<script src=/empty.js>ran.push(1)</script>"),
    ("an empty address and a text", "<script src=''>ran.push(1)</script>"),
];

/// Rejected pages that have no effect under a page's policy.
pub(super) const HOSTILE: [&str; 44] = [
    "<script>top.ran.push(1)</script>",
    "<script type=module>top.ran.push(1)</script><a href=javascript:0>",
    "<img src=/none onerror=ran.push(1)>",
    "<img src=/none/ onerror='ran.push(1)'/>",
    "<body onload=ran.push(1)>",
    "<body onpageshow=ran.push(1)>",
    "<svg onload=ran.push(1)>",
    "<svg/onload=ran.push(1)//>",
    "<svg><animate onbegin=ran.push(1) attributeName=x dur=1s>",
    "<svg><set onbegin=ran.push(1) attributeName=x>",
    "<svg><a href=javascript:ran.push(1) id=click><text y=20>x</text></a></svg>",
    "<svg><a id=click><animate attributeName=href to=javascript:ran.push(1) /><text y=20>x</text></a></svg>",
    "<svg><use href=\"data:image/svg+xml,<svg id='a' xmlns='http://www.w3.org/2000/svg'><script>top.ran.push(1)</script></svg>#a\">",
    "<svg><foreignObject><img src=/none onerror=ran.push(1)></foreignObject></svg>",
    "<math><mi xlink:href=javascript:ran.push(1) id=click>x</mi></math>",
    "<a href=javascript:ran.push(1) id=click>x</a>",
    "<a href='java&#10;script:ran.push(1)' id=click>x</a>",
    "<a href='&#1;javascript:ran.push(1)' id=click>x</a>",
    "<a href='data:text/html,<script>opener.ran.push(1)</script>' id=click>x</a>",
    "<form action=javascript:ran.push(1)><button id=click>x</button></form>",
    "<form><button formaction=javascript:ran.push(1) id=click>x</button></form>",
    "<input autofocus onfocus=ran.push(1)>",
    "<select autofocus onfocus=ran.push(1)>",
    "<details open ontoggle=ran.push(1)>x</details>",
    "<video><source onerror=ran.push(1) src=/none></video>",
    "<audio src=/none onerror=ran.push(1)>",
    "<iframe src=javascript:top.ran.push(1)></iframe>",
    "<iframe srcdoc='<script>top.ran.push(1)</script>'></iframe>",
    "<iframe srcdoc='<img src=/none onerror=top.ran.push(1)>'></iframe>",
    "<iframe src='data:text/html,<script>top.ran.push(1)</script>'></iframe>",
    "<object data='data:text/html,<script>top.ran.push(1)</script>'></object>",
    "<object data=javascript:top.ran.push(1)></object>",
    "<embed src=javascript:top.ran.push(1)>",
    "<embed src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"top.ran.push(1)\"/>'>",
    "<base href=javascript:/ran.push(1)//><a href=# id=click>x</a>",
    "<meta http-equiv=refresh content='0;url=javascript:ran.push(1)'>",
    "<meta http-equiv=refresh content='0;url=data:text/html,<script>ran.push(1)</script>'>",
    "<link rel=stylesheet href=/none onerror=ran.push(1)>",
    "<style onload=ran.push(1)></style>",
    "<script src='data:text/javascript,ran.push(1)'></script>",
    "<script type=module src='data:text/javascript,ran.push(1)'></script>",
    "<script type=importmap>{\"imports\": {\"m\": \"data:text/javascript,ran.push(1)\"}}</script><script type=module>import 'm'</script>",
    "<noscript><p title=\"</noscript><img src=/none onerror=ran.push(1)>\"></noscript>",
    "<p title='--><img src=/none onerror=ran.push(1)>'><!--</p><img src=/none onerror=ran.push(1)>--><b onclick=ran.push(1) id=click>x</b>",
];
