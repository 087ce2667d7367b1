//! The configured model providers.

use std::sync::Arc;

use kernel::{Clock, Secret, SystemClock};
use models::{
    EmbedRequest, EndpointSettings, ModelErrorKind, ModelRequest, ModelSettings, Models, NoPieces,
    TranscribeRequest,
};
use net::Client;

use crate::endpoint::{DONE, Endpoint, KEY, request, says};

fn models(base_url: Option<String>) -> Result<Models, ModelErrorKind> {
    let openai =
        EndpointSettings { base_url, api_key: Some(Secret::from(KEY)), ..EndpointSettings::default() };
    built(ModelSettings { openai, ..ModelSettings::default() })
}

fn built(settings: ModelSettings) -> Result<Models, ModelErrorKind> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let operator = Client::operator(clock.clone()).unwrap();
    Models::configured(settings, &operator, &clock).map_err(|error| error.kind)
}

#[tokio::test]
async fn the_configured_endpoint_may_be_local() {
    let endpoint = Endpoint::streaming(&(says("hello") + DONE)).await;
    let models = models(Some(endpoint.base())).unwrap();
    let (provider, model) = models.find("openai/some/model-1").unwrap();
    let model_request = ModelRequest { model: model.to_owned(), ..request() };
    assert_eq!(provider.call(&model_request, &NoPieces).await.unwrap().text, "hello");
    let seen = endpoint.requests.lock()[0].clone();
    assert!(
        seen.contains(&format!("authorization: Bearer {KEY}")) && seen.contains("\"model\":\"some/model-1\"")
    );
}

#[tokio::test]
async fn a_second_provider_can_be_configured() {
    assert!(models(None).unwrap().find("practice/rewrite").is_err());
    let practice = Arc::new(practice::Practice::new(Arc::new(SystemClock::new())));
    let models = models(None).unwrap().with(models::PRACTICE, practice);
    let (provider, model) = models.find("practice/rewrite").unwrap();
    let model_request = ModelRequest { model: model.to_owned(), ..request() };
    assert_eq!(provider.call(&model_request, &NoPieces).await.unwrap().text, "hi");
}

#[tokio::test]
async fn missing_settings_are_reported() {
    let without = models(None).unwrap();
    let (provider, _) = without.find("openai/gpt-4.1-mini").unwrap();
    let error = provider.call(&request(), &NoPieces).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotConfigured);
    assert!(error.message.contains("SERVICE_MODEL_BASE_URL"), "{error}");
    assert_eq!(without.find("mistral/x").err().unwrap().kind, ModelErrorKind::NotConfigured);
    assert_eq!(models(Some("no address".into())).err(), Some(ModelErrorKind::NotConfigured));
    let settings =
        EndpointSettings { base_url: None, api_key: Some(Secret::from(KEY)), ..EndpointSettings::default() };
    assert!(!format!("{settings:?}").contains(KEY));
    for (name, variable) in
        [("anthropic/x", "SERVICE_ANTHROPIC_API_KEY"), ("gemini/x", "SERVICE_GEMINI_API_KEY")]
    {
        let (provider, _) = without.find(name).unwrap();
        let error = provider.call(&request(), &NoPieces).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::NotConfigured);
        assert!(error.message.contains(variable), "{error}");
        let embedding = provider.embed(&EmbedRequest::default()).await.unwrap_err();
        assert_eq!(embedding, error);
        let recording = TranscribeRequest {
            model: "x".into(),
            audio: b"a".as_slice().into(),
            mime_type: "audio/webm".into(),
            language: None,
            prompt: None,
        };
        assert_eq!(provider.transcribe(&recording).await.unwrap_err(), error);
    }
}

#[tokio::test]
async fn every_provider_has_a_separate_endpoint() {
    let endpoint = Endpoint::answering(400, "", "").await;
    let settings = || EndpointSettings {
        base_url: Some(format!("http://{}", endpoint.at)),
        api_key: Some(Secret::from(KEY)),
        ..EndpointSettings::default()
    };
    let models =
        built(ModelSettings { openai: settings(), anthropic: settings(), gemini: settings() }).unwrap();
    for (name, path, key) in [
        ("openai/m", "/chat/completions", "authorization: Bearer "),
        ("anthropic/m", "/v1/messages", "x-api-key: "),
        ("gemini/m", "/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key: "),
    ] {
        let (provider, model) = models.find(name).unwrap();
        let model_request = ModelRequest { model: model.to_owned(), ..request() };
        let error = provider.call(&model_request, &NoPieces).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Rejected, "{error}");
        let seen = endpoint.requests.lock().pop().unwrap();
        assert!(seen.starts_with(&format!("POST {path} HTTP/1.1")), "{seen}");
        assert!(
            seen.contains(&format!("{key}{KEY}\r\n")) && seen.contains("idempotency-key: key-1"),
            "{seen}"
        );
    }
}
