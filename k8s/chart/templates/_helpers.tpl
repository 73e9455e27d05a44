{{/* Name of all objects: the release, with the chart's name if the release does not contain it. */}}
{{- define "streamgrove.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "streamgrove.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of pods of a component; they do not change between releases. */}}
{{- define "streamgrove.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "streamgrove.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "streamgrove.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Settings of a pod that all components share. */}}
{{- define "streamgrove.pod" -}}
serviceAccountName: {{ include "streamgrove.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "streamgrove.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Name of a component's user at the brokers. */}}
{{- define "streamgrove.user" -}}
{{- printf "%s-%s" (include "streamgrove.name" .root) .component -}}
{{- end -}}

{{- define "streamgrove.envFrom" -}}
- configMapRef:
    name: {{ include "streamgrove.name" .root }}
{{- if ne (include "streamgrove.ownUsers" .root) "true" }}
{{- with .root.Values.kafka.secret }}
- secretRef:
    name: {{ . | quote }}
    optional: true
{{- end }}
{{- end }}
{{- with .root.Values.schemaRegistry.secret }}
- secretRef:
    name: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Variables of a container of ours; empty if there are none. */}}
{{- define "streamgrove.env" -}}
{{- $kafka := .root.Values.kafka -}}
{{- if eq (include "streamgrove.ownUsers" .root) "true" }}
{{- $user := include "streamgrove.user" . }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
- name: GROVE_KAFKA_SASL_USERNAME
  value: {{ $user | quote }}
- name: GROVE_KAFKA_SASL_PASSWORD
  valueFrom:
    secretKeyRef: { name: {{ $user | quote }}, key: password }
{{- end }}
{{- end }}
{{- if and (eq (include "streamgrove.oauth" .root) "true") $kafka.oauth.clientSecret.secret }}
- name: GROVE_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET_FILE
  value: /etc/streamgrove/oauth/client-secret
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "true" if clients sign in with tokens. */}}
{{- define "streamgrove.oauth" -}}
{{- and (hasPrefix "SASL" .Values.kafka.securityProtocol) (eq .Values.kafka.saslMechanism "OAUTHBEARER") -}}
{{- end -}}

{{/* "true" if the operator of Strimzi makes the credentials of each component. */}}
{{- define "streamgrove.ownUsers" -}}
{{- and .Values.strimzi.users (ne (include "streamgrove.oauth" .) "true") -}}
{{- end -}}

{{/* Secret with the client's certificate: of the Strimzi user, or the one of the values. */}}
{{- define "streamgrove.clientSecret" -}}
{{- if and .root.Values.strimzi.users (eq .root.Values.kafka.securityProtocol "SSL") -}}
{{- include "streamgrove.user" . -}}
{{- else -}}
{{- .root.Values.kafka.client.secret -}}
{{- end -}}
{{- end -}}

{{- define "streamgrove.mounts" -}}
{{- with .root.Values.kafka.ca.secret }}
- name: kafka-ca
  mountPath: /etc/streamgrove/ca
  readOnly: true
{{- end }}
{{- if include "streamgrove.clientSecret" . }}
- name: kafka-client
  mountPath: /etc/streamgrove/client
  readOnly: true
{{- end }}
{{- if eq (include "streamgrove.oauth" .root) "true" }}
{{- if .root.Values.kafka.oauth.clientSecret.secret }}
- name: oauth
  mountPath: /etc/streamgrove/oauth
  readOnly: true
{{- end }}
{{- if eq .root.Values.kafka.oauth.method "file" }}
- name: kafka-token
  mountPath: /var/run/secrets/streamgrove
  readOnly: true
{{- end }}
{{- end }}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "streamgrove.volumes" -}}
{{- $kafka := .root.Values.kafka -}}
{{- with $kafka.ca.secret }}
- name: kafka-ca
  secret:
    secretName: {{ . | quote }}
    items:
      - { key: {{ $kafka.ca.key | quote }}, path: ca.crt }
{{- end }}
{{- with include "streamgrove.clientSecret" . }}
- name: kafka-client
  secret:
    secretName: {{ . | quote }}
    items:
      - { key: {{ $kafka.client.certificate | quote }}, path: user.crt }
      - { key: {{ $kafka.client.key | quote }}, path: user.key }
{{- end }}
{{- if eq (include "streamgrove.oauth" .root) "true" }}
{{- with $kafka.oauth.clientSecret }}
{{- if .secret }}
- name: oauth
  secret:
    secretName: {{ .secret | quote }}
    items:
      - { key: {{ .key | quote }}, path: client-secret }
{{- end }}
{{- end }}
{{- if eq $kafka.oauth.method "file" }}
- name: kafka-token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          audience: {{ $kafka.oauth.audience | quote }}
          expirationSeconds: {{ int $kafka.oauth.expirationSeconds }}
{{- end }}
{{- end }}
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
{{- end -}}

{{/* A value as the text of a variable: helm reads 52428800 as a float, whose text would be 5.24288e+07. */}}
{{- define "streamgrove.text" -}}
{{- if kindIs "string" . -}}{{- . -}}{{- else -}}{{- toJson . -}}{{- end -}}
{{- end -}}

{{/* The content of the config map, a variable on each line. */}}
{{- define "streamgrove.settings" -}}
{{- $kafka := .Values.kafka -}}
{{- $all := dict
    "GROVE_KAFKA_BOOTSTRAP_SERVERS" $kafka.bootstrapServers
    "GROVE_APPLICATION_ID" .Values.applicationId
    "GROVE_TOPICS_PREFIX" .Values.topics.prefix
    "GROVE_TOPICS_PARTITIONS" (toString (int .Values.topics.partitions))
    "GROVE_TOPICS_REPLICATION_FACTOR" (toString (int .Values.topics.replicationFactor))
    "GROVE_WEB_HOST" "0.0.0.0"
    "GROVE_WEB_PORT" "6066"
    "GROVE_STATE_DIR" "/var/lib/streamgrove"
    "GROVE_LOG_FORMAT" "json" -}}
{{- if ne $kafka.securityProtocol "PLAINTEXT" -}}
{{- $_ := set $all "GROVE_KAFKA_SECURITY_PROTOCOL" $kafka.securityProtocol -}}
{{- end -}}
{{- if hasPrefix "SASL" $kafka.securityProtocol -}}
{{- $_ := set $all "GROVE_KAFKA_SASL_MECHANISM" $kafka.saslMechanism -}}
{{- end -}}
{{- if $kafka.ca.secret -}}
{{- $_ := set $all "GROVE_KAFKA_SSL_CA_LOCATION" "/etc/streamgrove/ca/ca.crt" -}}
{{- end -}}
{{- if include "streamgrove.clientSecret" (dict "root" . "component" "worker") -}}
{{- $_ := set $all "GROVE_KAFKA_SSL_CERTIFICATE_LOCATION" "/etc/streamgrove/client/user.crt" -}}
{{- $_ := set $all "GROVE_KAFKA_SSL_KEY_LOCATION" "/etc/streamgrove/client/user.key" -}}
{{- end -}}
{{- if eq (include "streamgrove.oauth" .) "true" -}}
{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_METHOD" $kafka.oauth.method -}}
{{- if eq $kafka.oauth.method "file" -}}
{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL" "file:///var/run/secrets/streamgrove/token" -}}
{{- else if eq $kafka.oauth.method "oidc" -}}
{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL" $kafka.oauth.tokenEndpointUrl -}}
{{- if $kafka.oauth.clientId -}}{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_CLIENT_ID" $kafka.oauth.clientId -}}{{- end -}}
{{- if $kafka.oauth.scope -}}{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_SCOPE" $kafka.oauth.scope -}}{{- end -}}
{{- end -}}
{{- if eq $kafka.oauth.method "msk_iam" -}}
{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_CONFIG" (printf "region=%s" $kafka.oauth.region) -}}
{{- end -}}
{{- if $kafka.oauth.extensions -}}{{- $_ := set $all "GROVE_KAFKA_SASL_OAUTHBEARER_EXTENSIONS" $kafka.oauth.extensions -}}{{- end -}}
{{- end -}}
{{- if .Values.schemaRegistry.url -}}
{{- $_ := set $all "GROVE_SCHEMA_REGISTRY_URL" .Values.schemaRegistry.url -}}
{{- end -}}
{{- range $name, $value := $kafka.properties -}}
{{- $_ := set $all (printf "GROVE_KAFKA_%s" ($name | replace "." "_" | upper)) (include "streamgrove.text" $value) -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}{{- $_ := set $all $name (include "streamgrove.text" $value) -}}{{- end -}}
{{- range $name, $value := .Values.otel -}}{{- $_ := set $all $name (include "streamgrove.text" $value) -}}{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* "true" if a worker that is scaled away leaves its group. */}}
{{- define "streamgrove.drains" -}}
{{- or .Values.autoscaling.enabled .Values.drainOnScaleDown -}}
{{- end -}}
