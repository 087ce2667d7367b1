//! Audit trail actions.

/// Declares the table; each row is `Variant, "noun.verb", "what happened"`.
macro_rules! audit_actions {
    ($($variant:ident, $text:literal, $meaning:literal;)*) => {
        /// An action in the audit trail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $(#[doc = $meaning] $variant,)*
        }

        impl AuditAction {
            /// Every action, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stored and sent name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The action in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

audit_actions! {
    AuthSignedIn, "auth.signed_in", "A user signed in.";
    AuthSignedOut, "auth.signed_out", "A user signed out.";
    AuthSessionEnded, "auth.session_ended", "A user ended a session.";
    AuthTerminalCode, "auth.terminal_code", "A code for signing in on a terminal was issued.";
    AuthIdentityLinked, "auth.identity_linked", "An identity of a provider was linked to an account.";
    AuthRefreshReused, "auth.refresh_reused", "A refresh token was used again after its rotation; its session ended.";
    AuthRefreshedTooOften, "auth.refreshed_too_often", "A session was refreshed too often and ended.";
    AuthFailed, "auth.failed", "A credential was rejected.";
    AuthDenied, "auth.denied", "A request was refused for lack of a right.";
    WorkspaceCreated, "workspace.created", "A workspace was created.";
    WorkspaceRenamed, "workspace.renamed", "A workspace was renamed.";
    WorkspaceTrainingCallsSet, "workspace.training_calls_set", "The setting of a workspace for the replies of trainings was changed.";
    WorkspaceDeleted, "workspace.deleted", "A workspace was deleted.";
    MemberAdded, "member.added", "A person with an account became a member.";
    MemberInvited, "member.invited", "A person without an account was invited.";
    MemberJoined, "member.joined", "A sign-in made a user a member, by an invitation or as the configured owner.";
    MemberRoleChanged, "member.role_changed", "A member's role was changed.";
    MemberRemoved, "member.removed", "A member was removed.";
    ServiceTokenCreated, "service_token.created", "A service token was created.";
    ServiceTokenRotated, "service_token.rotated", "A service token got a new secret.";
    ServiceTokenRevoked, "service_token.revoked", "A service token was revoked, by hand or because its creator lost the rights.";
    ServiceTokenSecretEnded, "service_token.secret_ended", "A rotated secret of a service token ended before its time.";
    CredentialCreated, "credential.created", "A credential was stored in the vault.";
    CredentialChanged, "credential.changed", "The provider or description of a credential was changed.";
    CredentialRotated, "credential.rotated", "The secret of a credential was replaced.";
    CredentialDeleted, "credential.deleted", "A credential was deleted.";
    VaultRotated, "vault.rotated", "Credentials were sealed again with the active vault key.";
    ChatVisitorExported, "chat.visitor_exported", "The data of a chat's visitor was exported by a member or a token; the visitor is named by a digest.";
    ChatVisitorErased, "chat.visitor_erased", "The data of a chat's visitor was erased; the visitor is named by a digest.";
    ChatThreadChanged, "chat.thread_changed", "The title or the status of a chat's thread was changed.";
    WorkflowPublished, "workflow.published", "A workflow was published as a chat, or the login that its chat requires was changed.";
    WorkflowUnpublished, "workflow.unpublished", "A workflow's chat was unpublished.";
    WorkflowLiveVersionSet, "workflow.live_version_set", "A version of a workflow was made live.";
    WorkflowRolloutSet, "workflow.rollout_set", "The gate or the canary of a workflow was set or removed.";
    WorkflowCanaryRolledBack, "workflow.canary_rolled_back", "The service ended a canary that was worse than the live version.";
    WorkflowCanaryPromoted, "workflow.canary_promoted", "A canary became live, automatically or by a publisher.";
    WorkflowArchived, "workflow.archived", "A workflow was archived.";
    WorkflowRestored, "workflow.restored", "An archived workflow was restored.";
    TriggerCronSet, "trigger.cron_set", "A workflow's schedule was created or changed.";
    TriggerCronRemoved, "trigger.cron_removed", "A workflow's schedule was removed.";
    TriggerWebhookSet, "trigger.webhook_set", "A workflow's webhook was created or changed.";
    TriggerWebhookRemoved, "trigger.webhook_removed", "A workflow's webhook was removed.";
    AppCreated, "app.created", "An app was created.";
    AppUpdated, "app.updated", "An app was renamed.";
    AppAccessChanged, "app.access_changed", "The access to an app was changed.";
    AppDeleted, "app.deleted", "An app was deleted, by hand or with its workspace.";
    AppDeployed, "app.deployed", "A bundle was uploaded and became a deployment of an app.";
    AppDeploymentDeleted, "app.deployment_deleted", "An unpublished deployment of an app was deleted; the reason is its id.";
    AppDeployRefused, "app.deploy_refused", "A bundle for an app was refused; the reason is the first code.";
    AppPermissionsAcknowledged, "app.permissions_acknowledged", "The permissions of an app deployment were acknowledged; the reason is the revision.";
    AppPublished, "app.published", "A deployment of an app was published; the reason is the release.";
    AppRolledBack, "app.rolled_back", "An earlier release of an app was published again; the reason is the new release.";
    AppBindingSet, "app.binding_set", "A binding of an app was created or replaced.";
    AppBindingDeleted, "app.binding_deleted", "A binding of an app was deleted.";
    AppCollectionCreated, "app.collection_created", "A collection of an app was created.";
    AppCollectionDeleted, "app.collection_deleted", "A collection of an app was deleted.";
    SearchIndexDeleted, "search_index.deleted", "A search index was deleted.";
}
