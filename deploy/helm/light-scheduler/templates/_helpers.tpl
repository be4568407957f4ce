{{- define "light-scheduler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "light-scheduler.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "light-scheduler.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "light-scheduler.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "light-scheduler.selector" -}}
app.kubernetes.io/name: {{ include "light-scheduler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "light-scheduler.labels" -}}
{{ include "light-scheduler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "light-scheduler.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "light-scheduler.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "light-scheduler.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/* Whether workers start without a token: nobody is open to others by accident. */}}
{{- define "light-scheduler.insecure" -}}
{{- if not (kindIs "invalid" .Values.insecure) -}}
{{ .Values.insecure }}
{{- else if or (eq .Values.tls.clientAuth "required") .Values.settings.oidc_issuer -}}
false
{{- else -}}
{{ fail "insecure is required: true starts workers while there is no token, so that everybody who reaches them may do everything; with false, they end with an error and are restarted until there is one. docs/deployment.md, Access, says how to create it" }}
{{- end }}
{{- end }}

{{/* How to reach Kafka, all other settings, and extraEnv: for workers and for the job that creates the topics. */}}
{{- define "light-scheduler.environment" -}}
- name: LIGHT_SCHEDULER_APP_ID
  value: {{ .Values.appId | quote }}
- name: LIGHT_SCHEDULER_BROKER
  value: {{ printf "kafka://%s" (required "kafka.brokers is required: --set kafka.brokers=kafka-1:9092\\,kafka-2:9092" .Values.kafka.brokers) | quote }}
- name: LIGHT_SCHEDULER_SECURITY_PROTOCOL
  value: {{ .Values.kafka.securityProtocol | quote }}
{{- with .Values.kafka.saslMechanism }}
- name: LIGHT_SCHEDULER_SASL_MECHANISM
  value: {{ . | quote }}
{{- end }}
{{- with .Values.kafka.saslUsername }}
- name: LIGHT_SCHEDULER_SASL_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- range $setting, $key := .Values.kafka.secretFiles }}
- name: LIGHT_SCHEDULER_{{ $setting | upper }}
  value: {{ printf "/run/secrets/light-scheduler/%s" $key | quote }}
{{- end }}
- name: LIGHT_SCHEDULER_LOG_FORMAT
  value: {{ .Values.settings.log_format | default "json" | quote }}
{{- range $setting, $value := omit .Values.settings "log_format" }}
- name: LIGHT_SCHEDULER_{{ $setting | upper }}
  value: {{ include "light-scheduler.setting" $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A value as in the environment: lists with commas, whole numbers without an exponent. */}}
{{- define "light-scheduler.setting" -}}
{{- if kindIs "slice" . -}}
{{ join "," . }}
{{- else if kindIs "float64" . -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}

{{- define "light-scheduler.secretMount" -}}
{{- if .Values.kafka.secretFiles }}
- name: kafka
  mountPath: /run/secrets/light-scheduler
  readOnly: true
{{- end }}
{{- end }}

{{- define "light-scheduler.secretVolume" -}}
{{- if .Values.kafka.secretFiles }}
- name: kafka
  secret:
    secretName: {{ required "kafka.existingSecret is required with kafka.secretFiles: the name of a Secret with those keys" .Values.kafka.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Where a Secret of tls is in a pod, and what workers are told of it. */}}
{{- define "light-scheduler.tlsEnvironment" -}}
{{- if .Values.tls.existingSecret }}
{{- range $setting, $key := dict "certificate" "tls.crt" "key" "tls.key" "ca" "ca.crt" }}
- name: LIGHT_SCHEDULER_WEB_SSL_{{ $setting | upper }}
  value: /run/secrets/light-scheduler-tls/{{ $key }}
{{- end }}
{{- if ne .Values.tls.clientAuth "none" }}
- name: LIGHT_SCHEDULER_WEB_SSL_CLIENT_CA
  value: /run/secrets/light-scheduler-tls/ca.crt
- name: LIGHT_SCHEDULER_WEB_SSL_CLIENT_AUTH
  value: {{ .Values.tls.clientAuth }}
{{- end }}
{{- else if ne .Values.tls.clientAuth "none" }}
{{- fail "tls.existingSecret is required with tls.clientAuth: the name of a Secret with tls.crt, tls.key and ca.crt" }}
{{- end }}
{{- end }}

{{- define "light-scheduler.tlsMount" -}}
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /run/secrets/light-scheduler-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "light-scheduler.tlsVolume" -}}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* How a probe asks for a path: the kubelet has no certificate to show, so where one is required the worker asks itself. */}}
{{- define "light-scheduler.probe" -}}
{{- $tls := .values.tls -}}
{{- if and $tls.existingSecret (eq $tls.clientAuth "required") -}}
exec: {command: [python, -m, light_scheduler.worker_page, {{ .path }}]}
{{- else -}}
httpGet: {path: {{ .path }}, port: http{{ if $tls.existingSecret }}, scheme: HTTPS{{ end }}}
{{- end }}
{{- end }}
