"""Files that look like secrets, and those that only sound like them."""

import pytest

from septet.common.secrets import contains_secret, is_secret_name


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "app/.env.production",
        "prod.env",
        ".envrc",
        "certs/server.PEM",
        "deploy.key",
        "store.p12",
        "id_rsa",
        "id_ed25519",
        "keys/id_ecdsa_sk",
        ".netrc",
        ".pypirc",
        ".git-credentials",
        "credentials",
        "credentials.json",
        "client_secret.json",
        "secrets.yaml",
        "my-service-account.json",
        "home/.ssh/known",
        "infra/main.tfstate",
    ],
)
def test_names_of_secrets(path: str) -> None:
    assert is_secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "environment.py",
        "key.py",
        "keys.txt",
        "id_map.py",
        "id_rsa.pub",
        "identity",
        "secrets.py",
        "test_credentials.py",
        "docs/secrets.md",
        "monkey",
        "main.py",
        "secretary.txt",
        "turnkey.json",
    ],
)
def test_names_that_only_sound_like_it(path: str) -> None:
    assert not is_secret_name(path)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n",
        'key = "-----BEGIN PRIVATE KEY-----\\nMIIEvgIBADANBg"',
        "token = ghp_abcdefghijklmnopqrst0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "key: sk-proj-Ab3dEf6hIj9lMn2pQr5t",
        "a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc b",
    ],
)
def test_texts_that_hold_one(text: str) -> None:
    assert contains_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        'HEAD = "-----BEGIN PRIVATE KEY-----"\nassert HEAD in text\n',
        "pk_users_accounts_table_2 = 1",
        "hf_hub_download(repo_id, filename)",
        "sk-learn-compatible-estimators-v2",
        "key = os.environ['OPENAI_API_KEY']",
        "0123456789abcdef" * 4,
    ],
)
def test_texts_that_hold_none(text: str) -> None:
    assert not contains_secret(text)
