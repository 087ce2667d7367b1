// The OpenID provider of the npm package `oidc-provider`: everybody who comes is Ada, and agrees to everything.
// Arguments: the package's folder, the client's id, its secret, and `thin` or `full` identity tokens.

import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [folder, clientId, clientSecret, tokens] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`));

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: ['http://127.0.0.1/api/auth/oidc/callback'] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    // As the standard has it: what scopes ask for is told by the userinfo endpoint alone.
    conformIdTokenClaims: tokens === 'thin',
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: 'ada@example.org', email_verified: true, name: 'Ada' }),
    }),
  });
  // The port of the service is not known yet.
  provider.Client.prototype.redirectUriAllowed = (uri) => new URL(uri).pathname === '/api/auth/oidc/callback';
  provider.on('server_error', (ctx, error) => console.error(error));

  async function interact(request, response) {
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
      return provider.interactionFinished(request, response, { login: { accountId: 'ada-1' } });
    }
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    const consent = { grantId: await grant.save() };
    return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
  }

  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url.startsWith('/interaction/')) return handle(request, response);
    return interact(request, response).catch((error) => {
      console.error(error);
      response.writeHead(500).end();
    });
  });
  console.log(issuer);
});
